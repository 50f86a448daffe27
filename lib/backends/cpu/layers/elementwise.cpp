// SPDX-License-Identifier: Apache-2.0
#include "elementwise.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/elements/epilogue.hpp"
#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/elements/pairwise.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "backends/cpu/worker/workspace.hpp"

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

sg_status run_reduce(const sg_backend_reduce &reduce, workspace &space) noexcept {
  const sg_dtype type = sum_type_of(reduce.out_type);
  const bool narrow_parts = reduce.parts_count > 0 && reduce.part_type != type;
  const std::int64_t size = element_size(reduce.out_type), sum_size = element_size(type);
  const std::int64_t part_size = narrow_parts ? element_size(reduce.part_type) : sum_size;
  const auto *parts = static_cast<const char *>(reduce.parts);
  sg_scalar beta = reduce.beta;
  if (!is_complex(reduce.out_type)) beta.im = 0;
  const bool reads_c = !is_zero(beta);
  const epilogue end = {reduce.bias, reduce.bias_per_row != 0, reduce.activation};

  // Segments of a column that stay in the first-level cache while the parts are added: a few in their order, and the
  // sums of those pairwise.
  constexpr std::int64_t step = 512, few = 8;
  alignas(64) char c_values[step * 16], wide[step * 4];
  const std::int64_t longest = std::min(step, reduce.m), addends = (reduce.parts_count + few - 1) / few;
  poll stop(space);
  void *const memory = space.get(scratch::sums, pairwise_sums::bytes(addends, type, longest));
  if (memory == nullptr) return SG_STATUS_OUT_OF_MEMORY;
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
      pairwise_sums all(memory, type, count);
      for (std::int64_t first = 0; first < reduce.parts_count; first += few) {
        std::memcpy(all.next(), part(first), static_cast<std::size_t>(count * sum_size));
        for (std::int64_t next = first + 1; next < std::min(first + few, reduce.parts_count); ++next)
          simd().add(type, all.next(), part(next), count);
        all.push();
      }
      void *sums = reduce.parts_count > 0 ? all.total() : c_values;
      if (reads_c) {
        widen(c_values, c, reduce.out_type, count);
        if (!is_one(beta)) simd().scale(type, c_values, beta, count);
        if (sums != c_values) simd().add(type, sums, c_values, count);
      } else if (sums == c_values) {
        std::memset(sums, 0, static_cast<std::size_t>(count * sum_size));
      }
      if (is_any(end)) finish_sums(end, reduce.out_type, sums, i, j, count);
      narrow(c, reduce.out_type, sums, count);
      if (stop.stops(count * (reduce.parts_count + 1))) return SG_STATUS_CANCELLED;
    }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
