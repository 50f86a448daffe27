// SPDX-License-Identifier: Apache-2.0
#include "base/numa.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <new>

namespace sg {

namespace {

constexpr int preferred = 1, interleave = 3;  // of linux/mempolicy.h

// Calls add(number) for each number of a list of the kernel's, such as "0-3,8". False: it cannot be read.
template <class Add>
bool read_list(const std::string &path, Add &&add) noexcept {
  try {
    std::ifstream file(path);
    for (std::string range; std::getline(file, range, ',');) {
      int first = 0, last = 0;
      const int found = std::sscanf(range.c_str(), "%d-%d", &first, &last);
      if (found < 1 || first < 0) return false;
      for (int i = first; i <= (found == 2 ? last : first) && i < 1 << 16; ++i) add(i);
    }
    return file.eof();
  } catch (const std::bad_alloc &) {
    return false;
  }
}

std::string path_of(const std::string &system, const char *name) { return system + "/devices/system/node/" + name; }

}  // namespace

cpu_set_t cores_of_node(int node, int threads, const std::string &system) noexcept {
  cpu_set_t found, allowed;
  CPU_ZERO(&found);
  char name[48];
  std::snprintf(name, sizeof name, "node%d/cpulist", node);
  const auto add = [&](int core) {
    if (core < CPU_SETSIZE) CPU_SET(core, &found);
  };
  if (node < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0 || !read_list(path_of(system, name), add))
    CPU_ZERO(&found);
  else
    CPU_AND(&found, &found, &allowed);
  // Threads that share few cores would be slower than threads far from the device.
  if (CPU_COUNT(&found) < threads && CPU_COUNT(&found) < CPU_COUNT(&allowed)) CPU_ZERO(&found);
  return found;
}

void run_on(const cpu_set_t &cores) noexcept {
  cpu_set_t some;
  if (sched_getaffinity(0, sizeof some, &some) != 0) return;
  CPU_AND(&some, &some, &cores);
  if (CPU_COUNT(&some) > 0) sched_setaffinity(0, sizeof some, &some);
}

void page_placement::node_set::add(int node) noexcept {
  constexpr int width = 8 * sizeof *bits;
  if (node < static_cast<int>(most_nodes)) bits[node / width] |= 1ul << (node % width);
}

page_placement::page_placement(int node, const std::string &system) noexcept {
  node_set nodes;
  int count = 0;
  const auto add = [&](int each) { nodes.add(each), ++count; };
  if (node == interleaved)
    read_list(path_of(system, "has_memory"), add);
  else if (node >= 0)
    add(node);
  if (count == 0) return;
  if (syscall(SYS_get_mempolicy, &mode_before_, nodes_before_.bits, most_nodes, nullptr, 0) != 0) return;
  const int mode = node == interleaved ? interleave : preferred;
  is_set_ = syscall(SYS_set_mempolicy, mode, nodes.bits, most_nodes) == 0;
}

page_placement::~page_placement() {
  if (is_set_) syscall(SYS_set_mempolicy, mode_before_, nodes_before_.bits, most_nodes);
}

}  // namespace sg
