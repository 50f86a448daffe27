// SPDX-License-Identifier: Apache-2.0
// The cores and the memory that this process may use.
#pragma once

#include <cstdint>

namespace sg::cpu {

// The minimum of the affinity mask and of the cgroups' quotas (rounded up); at least 1. `root`: of the system's files.
std::int32_t usable_cores(const char *root = "") noexcept;

// Bytes of memory that this process may use: the machine's, or its cgroup's limit.
std::int64_t usable_memory(const char *root = "") noexcept;

// Of these about what can be allocated now: also its cgroup's limit less what the cgroup uses, but for pages that the
// kernel reclaims; -1: unknown.
std::int64_t free_memory(const char *root = "") noexcept;

}  // namespace sg::cpu
