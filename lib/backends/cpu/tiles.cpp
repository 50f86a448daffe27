// SPDX-License-Identifier: Apache-2.0
#include "tiles.hpp"

#include <algorithm>

#include "epilogue.hpp"
#include "pack.hpp"
#include "simd.hpp"
#include "workspace.hpp"

namespace sg::cpu {
namespace {

// Packing costs f16, by way of f32, a tenth of f32's rate at 256^3 and a fifth at 4096^3.
constexpr std::int64_t tile_m = 1024, tile_n = 1024;
// At most 1024, up to which f32 sums of products of i8 are whole and exact: 1024 * 2^14 = 2^24.
constexpr std::int64_t tile_k = 512;

// A segment of C's column, rows [row, row + n) = alpha * sums + beta * C and what ends it, rounded once.
void finish(void *c, sg_dtype out, const product &p, void *sums, std::int64_t row, std::int64_t column,
            std::int64_t n) noexcept {
  const sg_dtype type = sum_type_of(out);
  constexpr std::int64_t step = 512;
  alignas(64) char wide[step * 16];
  const std::int64_t size = element_size(out), sum_size = element_size(type);
  for (std::int64_t i = 0; i < n; i += step) {
    const std::int64_t count = std::min(step, n - i);
    char *to = static_cast<char *>(c) + i * size;
    char *sum = static_cast<char *>(sums) + i * sum_size;
    if (!is_zero(p.beta)) {
      widen(wide, to, out, count);
      if (is_one(p.alpha) && is_one(p.beta))
        simd().add(type, wide, sum, count);
      else
        simd().scaled_add(type, wide, p.alpha, sum, p.beta, count);
      sum = wide;
    } else if (!is_one(p.alpha)) {
      simd().scale(type, sum, p.alpha, count);
    }
    if (is_any(p.end)) finish_sums(p.end, out, sum, row + i, column, count);
    narrow(to, out, sum, count);
  }
}

}  // namespace

sg_status run_tiles(const product &p, sg_dtype in, sg_dtype out, const kernel &panels, workspace &space) noexcept {
  const sg_dtype sum_type = sum_type_of(out);
  const std::int64_t panel_size = element_size(panels.in), sum_size = element_size(sum_type);
  const std::int64_t tm = std::min(tile_m, p.m), tn = std::min(tile_n, p.n), tk = std::min(tile_k, p.k);
  // Sums of i8 by way of f32: each part is computed behind the sums and added as whole numbers.
  const bool whole = panels.out != sum_type;
  const auto bytes = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  void *panel_a = space.get(scratch::panel_a, bytes(tm * tk * panel_size));
  void *panel_b = space.get(scratch::panel_b, bytes(tk * tn * panel_size));
  auto *sums = static_cast<char *>(space.get(scratch::sums, bytes(tm * tn * sum_size * (whole ? 2 : 1))));
  if (panel_a == nullptr || panel_b == nullptr || sums == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  void *part = whole ? sums + tm * tn * sum_size : sums;

  for (std::int64_t j = 0; j < p.n; j += tn)
    for (std::int64_t i = 0; i < p.m; i += tm) {
      const std::int64_t rows = std::min(tm, p.m - i), cols = std::min(tn, p.n - j);
      for (std::int64_t l = 0; l < p.k; l += tk) {
        const std::int64_t depth = std::min(tk, p.k - l);
        pack(panel_a, panels.in, p.a, in, p.lda, p.op_a, i, l, rows, depth);
        pack(panel_b, panels.in, p.b, in, p.ldb, p.op_b, l, j, depth, cols);
        const product piece = {.m = rows,
                               .n = cols,
                               .k = depth,
                               .beta = {whole || l == 0 ? 0.0 : 1.0, 0},
                               .a = panel_a,
                               .b = panel_b,
                               .c = part,
                               .lda = rows,
                               .ldb = depth,
                               .ldc = rows};
        if (const sg_status status = panels.run(piece, space); status != SG_STATUS_OK) return status;
        if (!whole) continue;
        auto *totals = reinterpret_cast<std::int32_t *>(sums);
        if (l == 0) std::fill_n(totals, rows * cols, 0);
        simd().i32_add_f32(totals, static_cast<const float *>(part), rows * cols);
      }
      for (std::int64_t column = 0; column < cols; ++column)
        finish(static_cast<char *>(p.c) + (i + (j + column) * p.ldc) * element_size(out), out, p,
               sums + column * rows * sum_size, i, j + column, rows);
    }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
