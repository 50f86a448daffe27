// SPDX-License-Identifier: Apache-2.0
// Into how many parts a GEMM is split whose submitter waits for it (plan_request::latency).
#pragma once

#include <cstdint>

#include "plan/gemm/problem.hpp"

namespace sg {

// Parts of such a GEMM at most.
inline constexpr std::int64_t most_latency_parts = 16;

// By the problem and the number of cores only, so that equal calls have equal parts. 1: it is not split.
std::int64_t latency_parts(const problem &p, int lanes) noexcept;

}  // namespace sg
