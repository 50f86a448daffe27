// SPDX-License-Identifier: Apache-2.0
// Nodes of a folder that looks like /sys; where threads run, and where pages go.
#include "base/numa.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "base/thread.hpp"
#include "model/machine_model.hpp"
#include "run/dispatch/node_stagers.hpp"

namespace sg {
namespace {

class fake_system {
 public:
  fake_system() {
    std::string name = std::filesystem::temp_directory_path() / "sg-numa-XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~fake_system() { std::filesystem::remove_all(root_); }
  void write(const std::string &name, const std::string &text) const {
    const std::filesystem::path path = root_ + "/devices/system/node/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  const std::string &root() const { return root_; }

 private:
  std::string root_;
};

cpu_set_t allowed() {
  cpu_set_t mask;
  EXPECT_EQ(0, sched_getaffinity(0, sizeof mask, &mask));
  return mask;
}

int first_of(const cpu_set_t &mask) {
  int core = 0;
  while (!CPU_ISSET(core, &mask)) ++core;
  return core;
}

int mode_of_pages() {
  int mode = -1;
  return syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 ? mode : -1;
}

TEST(numa, cores_of_a_node_are_those_that_the_process_may_use) {
  const fake_system system;
  const cpu_set_t all = allowed();
  const int one = first_of(all);
  system.write("node0/cpulist", "0-1023");
  system.write("node1/cpulist", std::to_string(one) + ",1000-1001");
  system.write("node2/cpulist", "");
  system.write("node3/cpulist", "1000-1010");
  system.write("node4/cpulist", "no list");
  const cpu_set_t node0 = cores_of_node(0, 1, system.root()), node1 = cores_of_node(1, 1, system.root());
  EXPECT_TRUE(CPU_EQUAL(&all, &node0)) << "never wider than the process's";
  EXPECT_EQ(1, CPU_COUNT(&node1));
  EXPECT_TRUE(CPU_ISSET(one, &node1));
  for (const int node : {-1, 2, 3, 4, 5}) {
    const cpu_set_t none = cores_of_node(node, 1, system.root());
    EXPECT_EQ(0, CPU_COUNT(&none)) << node;
  }
}

TEST(numa, threads_are_not_bound_to_fewer_cores_than_they_need) {
  const fake_system system;
  const cpu_set_t all = allowed();
  const int count = CPU_COUNT(&all);
  if (count < 2) GTEST_SKIP() << "this process may use one core";
  system.write("node0/cpulist", std::to_string(first_of(all)));
  system.write("node1/cpulist", "0-1023");
  const cpu_set_t for_one = cores_of_node(0, 1, system.root()), for_two = cores_of_node(0, 2, system.root());
  EXPECT_EQ(1, CPU_COUNT(&for_one));
  EXPECT_EQ(0, CPU_COUNT(&for_two)) << "two would share a core beside an idle one";
  const cpu_set_t for_more = cores_of_node(1, count + 1, system.root());
  EXPECT_EQ(count, CPU_COUNT(&for_more)) << "there are no others";
}

TEST(numa, threads_are_bound_to_cores_that_they_may_use) {
  const cpu_set_t all = allowed();
  cpu_set_t one, none, seen_one, seen_none;
  CPU_ZERO(&one);
  CPU_ZERO(&none);
  CPU_SET(first_of(all), &one);
  thread bound("bound", [&] { run_on(one), seen_one = allowed(); });
  bound.join();
  thread unbound("unbound", [&] { run_on(none), seen_none = allowed(); });
  unbound.join();
  EXPECT_TRUE(CPU_EQUAL(&one, &seen_one));
  EXPECT_TRUE(CPU_EQUAL(&all, &seen_none));
}

// Where the kernel lets a process choose: containers often forbid it.
TEST(numa, pages_are_placed_for_a_time) {
  constexpr int any = 0, preferred = 1, interleave = 3;
  const int before = mode_of_pages();
  if (before != any) GTEST_SKIP() << "the policy of this process is " << before;
  const fake_system system;
  system.write("has_memory", "0");
  {
    const page_placement near(0);
    if (mode_of_pages() == any) GTEST_SKIP() << "the kernel places no pages for this process";
    EXPECT_EQ(preferred, mode_of_pages());
    {
      const page_placement over(page_placement::interleaved, system.root());
      EXPECT_EQ(interleave, mode_of_pages());
    }
    EXPECT_EQ(preferred, mode_of_pages());
    const page_placement unknown(-1), absent(page_placement::interleaved, "/nowhere");
    EXPECT_EQ(preferred, mode_of_pages()) << "nothing changes";
  }
  EXPECT_EQ(any, mode_of_pages());
}

TEST(numa, devices_of_a_node_share_its_staging_workers) {
  machine_model machine;
  machine.staging_workers = 9;
  for (const int node : {1, 0, 1, -1}) machine.devices.emplace_back().numa_node = node;
  const node_stagers made(machine, 2, [](inflight_command &) {});
  EXPECT_EQ(3u, made.size());
  EXPECT_EQ(made.node_of(device_index(0)), made.node_of(device_index(2)));
  EXPECT_NE(made.node_of(device_index(0)), made.node_of(device_index(1)));
  EXPECT_NE(made.node_of(device_index(0)), made.node_of(device_index(3)));
  EXPECT_NE(made.node_of(device_index(1)), made.node_of(device_index(3)));
}

// How many workers each node has.
std::vector<int> shares_of(int workers, const std::vector<int> &nodes) {
  machine_model machine;
  machine.staging_workers = workers;
  for (const int node : nodes) machine.devices.emplace_back().numa_node = node;
  const node_stagers made(machine, 2, [](inflight_command &) {});
  std::vector<int> shares;
  for (std::size_t i = 0; i < made.size(); ++i) shares.push_back(made.node(i).workers());
  return shares;
}

TEST(numa, shares_of_staging_workers_add_up_to_all_of_them) {
  EXPECT_EQ((std::vector<int>{8, 8}), shares_of(16, {0, 1}));
  EXPECT_EQ((std::vector<int>{5}), shares_of(5, {3, 3}));
  EXPECT_EQ((std::vector<int>{1, 1}), shares_of(1, {0, 1})) << "each node has one";
  const std::vector<std::vector<int>> machines = {{0, 1}, {0, 1, 2}, {1, 0, 1, -1}, {0, 0, 0, 0, 0, 0, 1, 2}};
  for (const std::vector<int> &nodes : machines)
    for (int workers = 3; workers < 40; ++workers) {
      const std::vector<int> shares = shares_of(workers, nodes);
      EXPECT_EQ(workers, std::accumulate(shares.begin(), shares.end(), 0)) << workers;
      EXPECT_GE(*std::min_element(shares.begin(), shares.end()), 1) << workers;
    }
}

}  // namespace
}  // namespace sg
