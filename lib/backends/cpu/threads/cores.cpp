// SPDX-License-Identifier: Apache-2.0
#include "cores.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace sg::cpu {
namespace {

// The beginning of a small file as a string; "" if there is none.
void read_text(const char *path, char *text, std::size_t size) noexcept {
  text[0] = '\0';
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t length = read(file, text, size - 1);
  text[length > 0 ? length : 0] = '\0';
  close(file);
}

// A hierarchy of cgroups: a controller of it, of version 2 none, and where it is mounted.
struct hierarchy {
  std::string_view controller;
  const char *mount;
};
constexpr hierarchy version_2{"", "/sys/fs/cgroup"}, cpu_of_version_1{"cpu", "/sys/fs/cgroup/cpu"},
    memory_of_version_1{"memory", "/sys/fs/cgroup/memory"};

// Whether a list with commas has the word, or both are empty.
bool has_word(std::string_view list, std::string_view word) noexcept {
  if (list.empty()) return word.empty();
  for (;;) {
    const std::size_t end = list.find(',');
    if (list.substr(0, end) == word) return true;
    if (end == list.npos) return false;
    list.remove_prefix(end + 1);
  }
}

// The process's folder of a hierarchy: /proc/self/cgroup has lines of "number:controllers:/folder". "": not found.
std::string_view folder_in(std::string_view lines, std::string_view controller) noexcept {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const std::size_t first = line.find(':'), second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second != line.npos && has_word(line.substr(first + 1, second - first - 1), controller))
      return line.substr(second + 1);
  }
  return "";
}

// Calls body with each folder, from the process's cgroup to the mount. A container may see its own as the mount only.
template <class Body>
void for_each_cgroup(const char *root, const hierarchy &of, Body body) noexcept {
  char path[2304], text[4096], inside[2048];
  std::snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  read_text(path, text, sizeof text);
  const std::string_view own = folder_in(text, of.controller);
  std::snprintf(inside, sizeof inside, "%.*s", static_cast<int>(own.size()), own.data());
  for (;;) {
    std::snprintf(path, sizeof path, "%s%s%s", root, of.mount, inside);
    body(path);
    char *const slash = std::strrchr(inside, '/');
    if (slash == nullptr) return;
    *slash = '\0';
  }
}

// The number that a file of a cgroup begins with; -1: there is none, as "max".
std::int64_t number_in(const char *folder, const char *name) noexcept {
  char path[2400], text[64];
  std::snprintf(path, sizeof path, "%s/%s", folder, name);
  read_text(path, text, sizeof text);
  return text[0] >= '0' && text[0] <= '9' ? std::atoll(text) : -1;
}

// Bytes of inactive file pages in memory.stat, which the kernel reclaims first.
std::int64_t inactive_pages(const char *folder, const char *key) noexcept {
  char path[2400], text[8192];
  std::snprintf(path, sizeof path, "%s/memory.stat", folder);
  read_text(path, text, sizeof text);
  const char *const line = std::strstr(text, key);
  return line == nullptr ? 0 : std::atoll(line + std::strlen(key));
}

struct memory_files {
  hierarchy of;
  const char *limit, *usage, *inactive;
};
constexpr memory_files memory_of_versions[] = {
    {version_2, "memory.max", "memory.current", "\ninactive_file "},
    {memory_of_version_1, "memory.limit_in_bytes", "memory.usage_in_bytes", "\ntotal_inactive_file "}};

// The minimum of `bytes` and the limits of the process's cgroups; with `counts_usage`, of the limits minus the usage.
std::int64_t limit_by_cgroups(const char *root, std::int64_t bytes, bool counts_usage) noexcept {
  for (const memory_files &files : memory_of_versions)
    for_each_cgroup(root, files.of, [&](const char *folder) {
      const std::int64_t limit = number_in(folder, files.limit);
      if (limit <= 0) return;
      const std::int64_t used = counts_usage ? number_in(folder, files.usage) : 0;
      const std::int64_t kept =
          std::max<std::int64_t>(used - (used > 0 ? inactive_pages(folder, files.inactive) : 0), 0);
      bytes = std::clamp<std::int64_t>(limit - kept, 0, bytes);
    });
  return bytes;
}

std::int32_t affinity_cores() noexcept {
  // On a large machine the mask may be longer than cpu_set_t.
  for (int cores = 1024; cores <= 1 << 18; cores *= 4) {
    cpu_set_t *mask = CPU_ALLOC(cores);
    if (mask == nullptr) return 1;
    const std::size_t size = CPU_ALLOC_SIZE(cores);
    const bool known = sched_getaffinity(0, size, mask) == 0;
    const int count = known ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (known) return std::max(count, 1);
  }
  return 1;
}

}  // namespace

std::int32_t usable_cores(const char *root) noexcept {
  double cores = affinity_cores();
  const auto take = [&cores](double quota, double period) {
    if (quota > 0 && period > 0) cores = std::min(cores, std::ceil(quota / period));
  };
  for_each_cgroup(root, version_2, [&](const char *folder) {
    char path[2400], text[128];
    std::snprintf(path, sizeof path, "%s/cpu.max", folder);
    read_text(path, text, sizeof text);
    double quota = 0, period = 0;
    if (std::sscanf(text, "%lf %lf", &quota, &period) == 2) take(quota, period);
  });
  for_each_cgroup(root, cpu_of_version_1, [&](const char *folder) {
    take(static_cast<double>(number_in(folder, "cpu.cfs_quota_us")),
         static_cast<double>(number_in(folder, "cpu.cfs_period_us")));
  });
  return static_cast<std::int32_t>(std::max(cores, 1.0));
}

std::int64_t usable_memory(const char *root) noexcept {
  return limit_by_cgroups(root, static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE), false);
}

std::int64_t free_memory(const char *root) noexcept {
  char path[2304], text[512];
  std::snprintf(path, sizeof path, "%s/proc/meminfo", root);
  read_text(path, text, sizeof text);
  const char *const line = std::strstr(text, "\nMemAvailable:");
  long long kibibytes = 0;
  if (line == nullptr || std::sscanf(line, "\nMemAvailable: %lld", &kibibytes) != 1) return -1;
  return limit_by_cgroups(root, kibibytes * 1024, true);
}

}  // namespace sg::cpu
