// SPDX-License-Identifier: Apache-2.0
#include "elementwise.hpp"

#include <algorithm>
#include <cstring>

#include "epilogue.hpp"
#include "pack.hpp"
#include "simd.hpp"

namespace sg::cpu {

void run_copy(const sg_backend_copy &copy) noexcept {
  auto *dst = static_cast<char *>(copy.dst);
  const auto *src = static_cast<const char *>(copy.src);
  if (copy.dst_pitch == copy.width && copy.src_pitch == copy.width) {
    std::memcpy(dst, src, static_cast<std::size_t>(copy.width) * static_cast<std::size_t>(copy.height));
    return;
  }
  for (std::int64_t i = 0; i < copy.height; ++i)
    std::memcpy(dst + i * copy.dst_pitch, src + i * copy.src_pitch, static_cast<std::size_t>(copy.width));
}

void run_reduce(const sg_backend_reduce &reduce) noexcept {
  const sg_dtype type = sum_type_of(reduce.out_type);
  const bool narrow_parts = reduce.parts_count > 0 && reduce.part_type != type;
  const std::int64_t size = element_size(reduce.out_type), sum_size = element_size(type);
  const std::int64_t part_size = narrow_parts ? element_size(reduce.part_type) : sum_size;
  const auto *parts = static_cast<const char *>(reduce.parts);
  sg_scalar beta = reduce.beta;
  if (!is_complex(reduce.out_type)) beta.im = 0;
  const bool reads_c = !is_zero(beta);
  const epilogue end = {reduce.bias, reduce.bias_per_row != 0, reduce.activation};

  // Segments of a column that stay in the first-level cache while the parts are added.
  constexpr std::int64_t step = 512;
  alignas(64) char sums[step * 16], wide[step * 4];
  for (std::int64_t j = 0; j < reduce.n; ++j)
    for (std::int64_t i = 0; i < reduce.m; i += step) {
      const std::int64_t count = std::min(step, reduce.m - i);
      char *c = static_cast<char *>(reduce.c) + (i + j * reduce.ldc) * size;
      const auto part = [&](std::int64_t index) {
        const char *at = parts + (i + j * reduce.part_ld + index * reduce.part_stride) * part_size;
        if (!narrow_parts) return at;
        widen(wide, at, reduce.part_type, count);
        return static_cast<const char *>(wide);
      };
      std::int64_t next = 0;
      if (reads_c) {
        widen(sums, c, reduce.out_type, count);
        if (!is_one(beta)) simd().scale(type, sums, beta, count);
      } else if (reduce.parts_count > 0) {
        std::memcpy(sums, part(next++), static_cast<std::size_t>(count * sum_size));
      } else {
        std::memset(sums, 0, static_cast<std::size_t>(count * sum_size));
      }
      for (; next < reduce.parts_count; ++next) simd().add(type, sums, part(next), count);
      if (is_any(end)) finish_sums(end, reduce.out_type, sums, i, j, count);
      narrow(c, reduce.out_type, sums, count);
    }
}

}  // namespace sg::cpu
