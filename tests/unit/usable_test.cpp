// SPDX-License-Identifier: Apache-2.0
// Cores and memory by the limits of cgroups of both versions, in folders that stand for the system's files.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "backends/cpu/threads/cores.hpp"

namespace sg::cpu {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;

class cgroups : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "sg-cgroups-XXXXXX").string();
    ASSERT_NE(nullptr, mkdtemp(name.data()));
    root_ = name;
    write("proc/meminfo", "MemTotal:       8388608 kB\nMemFree:  100 kB\nMemAvailable:    4096 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string &path, const std::string &text) {
    const std::filesystem::path whole = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  std::int64_t usable() const { return usable_memory(root_.c_str()); }
  std::int64_t available() const { return free_memory(root_.c_str()); }

  std::string root_;
};

TEST_F(cgroups, none) {
  EXPECT_EQ(4096 * 1024, available());
  EXPECT_EQ(usable_memory("/nonexistent"), usable());
  EXPECT_EQ(-1, free_memory("/nonexistent"));
}

TEST_F(cgroups, of_version_2) {
  write("proc/self/cgroup", "1:name=systemd:/elsewhere\n0::/service/job\n");
  write("sys/fs/cgroup/service/job/memory.max", "max\n");
  write("sys/fs/cgroup/service/job/memory.current", "999999999999\n");
  EXPECT_EQ(4096 * 1024, available()) << "no limit";
  write("sys/fs/cgroup/service/memory.max", std::to_string(3 * mebibyte) + "\n");
  EXPECT_EQ(3 * mebibyte, usable()) << "of the folder above";
  EXPECT_EQ(3 * mebibyte, available()) << "nothing is used";
  write("sys/fs/cgroup/service/memory.current", std::to_string(2 * mebibyte) + "\n");
  EXPECT_EQ(mebibyte, available());
  write("sys/fs/cgroup/service/memory.stat", "anon 4\nfile 1048576\ninactive_file 524288\nactive_file 9\n");
  EXPECT_EQ(mebibyte + mebibyte / 2, available()) << "without pages that are taken back";
  write("sys/fs/cgroup/service/memory.current", std::to_string(5 * mebibyte) + "\n");
  EXPECT_EQ(0, available()) << "above its limit";
  EXPECT_EQ(3 * mebibyte, usable());
}

TEST_F(cgroups, of_version_1) {
  write("proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n");
  // A container sees its own as the mount.
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(2 * mebibyte) + "\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(mebibyte) + "\n");
  write("sys/fs/cgroup/memory/memory.stat", "cache 7\ninactive_file 1\ntotal_inactive_file 262144\n");
  EXPECT_EQ(2 * mebibyte, usable());
  EXPECT_EQ(mebibyte + mebibyte / 4, available());
  write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", std::to_string(mebibyte) + "\n");
  EXPECT_EQ(mebibyte, usable());
}

TEST_F(cgroups, quotas_of_cores) {
  write("proc/self/cgroup", "5:cpuset:/other\n4:cpuacct,cpu:/a\n0::/b\n");
  const std::int32_t all = usable_cores(root_.c_str());
  EXPECT_EQ(usable_cores("/nonexistent"), all);
  write("sys/fs/cgroup/b/cpu.max", "max 100000\n");
  EXPECT_EQ(all, usable_cores(root_.c_str()));
  write("sys/fs/cgroup/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(1, usable_cores(root_.c_str()));
  write("sys/fs/cgroup/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(all, usable_cores(root_.c_str()));
  write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(1, usable_cores(root_.c_str()));
}

}  // namespace
}  // namespace sg::cpu
