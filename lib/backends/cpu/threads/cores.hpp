// SPDX-License-Identifier: Apache-2.0
// Number of cores that this process may use.
#pragma once

#include <cstdint>

namespace sg::cpu {

// The minimum of the affinity mask and of the cgroups' quotas (rounded up); at least 1.
std::int32_t usable_cores() noexcept;

// Bytes of memory that this process may use: the machine's, or its cgroup's limit.
std::int64_t usable_memory() noexcept;

// Of these about what can be allocated now; -1: unknown.
std::int64_t free_memory() noexcept;

}  // namespace sg::cpu
