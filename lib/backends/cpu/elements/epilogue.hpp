// SPDX-License-Identifier: Apache-2.0
// Bias and activation, applied to accumulators.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>

#include "kernel.hpp"

namespace sg::cpu {

inline bool is_any(const epilogue &end) noexcept { return end.bias != nullptr || end.activation != SG_ACTIVATION_NONE; }

// Applies to the sums of C's column j, rows [i, i + n).
void finish_sums(const epilogue &end, sg_dtype out, void *sums, std::int64_t i, std::int64_t j,
                 std::int64_t n) noexcept;
// Applies to all of C, whose type is its accumulator's.
void finish_result(const gemm_args &p, sg_dtype out) noexcept;

}  // namespace sg::cpu
