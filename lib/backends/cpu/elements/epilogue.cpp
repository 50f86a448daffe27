// SPDX-License-Identifier: Apache-2.0
#include "epilogue.hpp"

#include <algorithm>

#include "backends/cpu/simd/simd.hpp"
#include "pack.hpp"

namespace sg::cpu {

void finish_sums(const epilogue &end, sg_dtype out, void *sums, std::int64_t i, std::int64_t j,
                 std::int64_t n) noexcept {
  const sg_dtype type = sum_type_of(out);
  const auto *bias = static_cast<const char *>(end.bias);
  if (bias != nullptr) bias += (end.bias_per_row ? i : j) * element_size(out);
  if (bias == nullptr || type == out) return simd().finish(type, sums, bias, end.bias_per_row, end.activation, n);
  constexpr std::int64_t step = 512;
  alignas(64) float wide[step];
  if (!end.bias_per_row) widen(wide, bias, out, 1);
  for (std::int64_t first = 0; first < n; first += step) {
    const std::int64_t count = std::min(step, n - first);
    if (end.bias_per_row) widen(wide, bias + first * element_size(out), out, count);
    simd().finish(type, static_cast<float *>(sums) + first, wide, end.bias_per_row, end.activation, count);
  }
}

}  // namespace sg::cpu
