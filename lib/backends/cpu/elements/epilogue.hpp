// SPDX-License-Identifier: Apache-2.0
// Bias and activation, applied to accumulators.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>

namespace sg::cpu {

// Applied to the sums of a GEMM or a reduction before they are stored in C.
struct epilogue {
  const void *bias = nullptr;
  bool bias_per_row = false;
  sg_activation activation = SG_ACTIVATION_NONE;
};

inline bool is_any(const epilogue &end) noexcept { return end.bias != nullptr || end.activation != SG_ACTIVATION_NONE; }

// Applies to the sums of C's column j, rows [i, i + n).
void finish_sums(const epilogue &end, sg_dtype out, void *sums, std::int64_t i, std::int64_t j,
                 std::int64_t n) noexcept;

}  // namespace sg::cpu
