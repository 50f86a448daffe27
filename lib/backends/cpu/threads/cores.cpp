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

// This process's folder below the cgroup mount: of version 2's hierarchy ("0::/path"). "": none.
void cgroup_folder(char *folder, std::size_t size) noexcept {
  char text[4096];
  read_text("/proc/self/cgroup", text, sizeof text);
  const char *line = std::strncmp(text, "0::", 3) == 0 ? text : std::strstr(text, "\n0::");
  if (line == nullptr) {
    folder[0] = '\0';
    return;
  }
  const char *path = std::strchr(line, '/');
  const int length = path == nullptr ? 0 : static_cast<int>(std::strcspn(path, "\n"));
  std::snprintf(folder, size, "%.*s", length, path == nullptr ? "" : path);
}

// Calls body with the text of `name` in the process's cgroup and its ancestors up to the mount.
template <class Body>
void for_each_cgroup(const char *name, Body body) noexcept {
  char folder[2048], path[2304], text[128];
  cgroup_folder(folder, sizeof folder);
  for (;;) {
    std::snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", folder, name);
    read_text(path, text, sizeof text);
    body(text);
    char *slash = std::strrchr(folder, '/');
    if (slash == nullptr) return;
    *slash = '\0';
  }
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

std::int32_t usable_cores() noexcept {
  double cores = affinity_cores();
  for_each_cgroup("cpu.max", [&cores](const char *text) {
    double quota = 0, period = 0;
    if (std::sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0)
      cores = std::min(cores, std::ceil(quota / period));
  });
  // Version 1: a separate controller.
  char quota[64], period[64];
  read_text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof quota);
  read_text("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period);
  if (std::atof(quota) > 0 && std::atof(period) > 0)
    cores = std::min(cores, std::ceil(std::atof(quota) / std::atof(period)));
  return static_cast<std::int32_t>(std::max(cores, 1.0));
}

std::int64_t usable_memory() noexcept {
  std::int64_t bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  for_each_cgroup("memory.max", [&bytes](const char *text) {
    const long long limit = std::atoll(text);
    if (limit > 0) bytes = std::min<std::int64_t>(bytes, limit);
  });
  return bytes;
}

std::int64_t free_memory() noexcept {
  char text[512];
  read_text("/proc/meminfo", text, sizeof text);
  const char *const line = std::strstr(text, "\nMemAvailable:");
  long long kibibytes = 0;
  if (line == nullptr || std::sscanf(line, "\nMemAvailable: %lld", &kibibytes) != 1) return -1;
  return std::min<std::int64_t>(usable_memory(), kibibytes * 1024);
}

}  // namespace sg::cpu
