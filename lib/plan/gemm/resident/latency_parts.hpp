// SPDX-License-Identifier: Apache-2.0
// Number of parts of a GEMM with a waiting submitter (plan_request::latency).
#pragma once

#include <cstdint>

#include "plan/gemm/resident/problem.hpp"

namespace sg {

// Limit of parts of such a GEMM.
inline constexpr std::int64_t most_latency_parts = 16;

// Depends on the problem and the number of cores only, so that equal calls have equal parts. 1: no split.
std::int64_t latency_parts(const problem &p, int lanes) noexcept;

}  // namespace sg
