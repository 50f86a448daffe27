// SPDX-License-Identifier: Apache-2.0
// Workers of the cpu backend sleep on a core each, where there are as many as cores, and are free while they work.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <streamgemm/streamgemm.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

// A number for each set of cores, of those below 64.
std::uint64_t mask_of(pid_t thread) {
  cpu_set_t set;
  std::uint64_t mask = 0;
  if (sched_getaffinity(thread, sizeof set, &set) != 0) return 0;
  for (int core = 0; core < 64; ++core) mask |= std::uint64_t{CPU_ISSET(core, &set) != 0} << core;
  return mask;
}

std::vector<pid_t> workers() {
  std::vector<pid_t> found;
  DIR *const tasks = opendir("/proc/self/task");
  while (const dirent *task = readdir(tasks)) {
    std::ifstream file(std::string("/proc/self/task/") + task->d_name + "/comm");
    std::string name;
    if (file >> name && name == "streamgemm-cpu") found.push_back(std::atoi(task->d_name));
  }
  closedir(tasks);
  return found;
}

std::vector<std::uint64_t> masks_of_workers() {
  std::vector<std::uint64_t> masks;
  for (const pid_t worker : workers()) masks.push_back(mask_of(worker));
  return masks;
}

// Looks until it holds; false after a minute.
template <class Condition>
bool comes(Condition &&holds) {
  for (int look = 0; look < 60'000; ++look, std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (holds()) return true;
  return false;
}

struct context {
  explicit context(std::int32_t lanes) {
    sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.compute_lanes = lanes;
    EXPECT_EQ(SG_STATUS_OK, sg_context_create(&options, &handle)) << sg_last_error_message();
  }
  ~context() { sg_context_release(handle); }
  sg_context *handle = nullptr;
};

class homes : public testing::Test {
 protected:
  void SetUp() override {
    if (cores() < 2 || cores() > 64) GTEST_SKIP() << "with " << cores() << " cores";
  }
  std::int32_t cores() const { return __builtin_popcountll(all_); }
  bool all_sleep_apart() const {
    const std::vector<std::uint64_t> masks = masks_of_workers();
    std::set<std::uint64_t> single;
    for (const std::uint64_t mask : masks)
      if (__builtin_popcountll(mask) == 1 && (mask & all_) == mask) single.insert(mask);
    return single.size() == masks.size() && masks.size() == static_cast<std::size_t>(cores());
  }
  // One product that takes until it is told to end would be better; this one takes some tenths of a second.
  void submit_long(const context &in) {
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    constexpr std::int64_t n = 2048;
    memory_.resize(3 * n * n);
    desc.a = {memory_.data(), n, n, n, SG_DTYPE_F64, SG_LAYOUT_COLUMN_MAJOR};
    desc.b = desc.c = desc.a;
    desc.b.data = memory_.data() + n * n;
    desc.c.data = memory_.data() + 2 * n * n;
    ASSERT_EQ(SG_STATUS_OK, sg_gemm_async(in.handle, &desc, nullptr, nullptr)) << sg_last_error_message();
  }

  const std::uint64_t all_ = mask_of(0);
  std::vector<double> memory_;
};

TEST_F(homes, one_for_each_worker_that_sleeps_and_none_while_it_works) {
  const context in(cores());
  EXPECT_TRUE(comes([this] { return all_sleep_apart(); }));
  submit_long(in);
  EXPECT_TRUE(comes([this] {
    for (const std::uint64_t mask : masks_of_workers())
      if (mask == all_) return true;
    return false;
  })) << "a worker that works may go anywhere";
  EXPECT_EQ(SG_STATUS_OK, sg_context_synchronize(in.handle));
  EXPECT_TRUE(comes([this] { return all_sleep_apart(); }));
}

TEST_F(homes, none_where_there_are_fewer_workers_than_cores) {
  const context in(1);
  submit_long(in);
  EXPECT_EQ(SG_STATUS_OK, sg_context_synchronize(in.handle));
  for (int look = 0; look < 100; ++look, std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    EXPECT_EQ(std::vector<std::uint64_t>{all_}, masks_of_workers());
}

TEST_F(homes, a_mask_that_somebody_sets_stays) {
  const context in(cores());
  ASSERT_TRUE(comes([this] { return all_sleep_apart(); }));
  // Not the home of any: another would be taken for its home.
  const std::vector<pid_t> threads = workers();
  cpu_set_t narrow;
  CPU_ZERO(&narrow);
  const std::uint64_t home = mask_of(threads[0]), other = mask_of(threads[1]);
  CPU_SET(__builtin_ctzll(other), &narrow);
  ASSERT_NE(home, other);
  ASSERT_EQ(0, sched_setaffinity(threads[0], sizeof narrow, &narrow));
  for (int i = 0; i < 3; ++i) {
    submit_long(in);
    EXPECT_EQ(SG_STATUS_OK, sg_context_synchronize(in.handle));
    EXPECT_EQ(other, mask_of(threads[0]));
  }
}

}  // namespace
