// SPDX-License-Identifier: Apache-2.0
#include "tiles.hpp"

#include <algorithm>

#include "epilogue.hpp"
#include "pack.hpp"
#include "simd.hpp"
#include "workspace.hpp"

namespace sg::cpu {
namespace {

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

sg_status run_tiles(const product &p, sg_dtype in, sg_dtype out, const kernel &panels, const tiling &tiles,
                    workspace &space) noexcept {
  const sg_dtype sum_type = sum_type_of(out);
  const std::int64_t panel_size = element_size(panels.in), sum_size = element_size(sum_type);
  const std::int64_t tm = std::min(tiles.m, p.m), tn = std::min(tiles.n, p.n), tk = std::min(tiles.k, p.k);
  // Sums of i8 whose kernel cannot add to them: each part is computed behind the sums and added as whole numbers.
  const bool whole = panels.out != sum_type || panels.takes == scalars::one_and_zero;
  const auto bytes = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  void *panel_a = space.get(scratch::panel_a, bytes(tm * tk * panel_size));
  void *panel_b = space.get(scratch::panel_b, bytes(tk * tn * panel_size));
  auto *sums = static_cast<char *>(space.get(scratch::sums, bytes(tm * tn * sum_size * (whole ? 2 : 1))));
  if (panel_a == nullptr || panel_b == nullptr || sums == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  void *part = whole ? sums + tm * tn * sum_size : sums;
  // Elements [row, row + rows) x [col, col + cols) of op(x); the panel's leading dimension.
  const auto bring = [&](void *panel, const void *x, std::int64_t ld, sg_op op, std::int64_t row, std::int64_t col,
                         std::int64_t rows, std::int64_t cols) {
    if (tiles.as_stored && op != SG_OP_N) {
      pack(panel, panels.in, x, in, ld, SG_OP_N, col, row, cols, rows);
      return cols;
    }
    pack(panel, panels.in, x, in, ld, op, row, col, rows, cols);
    return rows;
  };

  for (std::int64_t j = 0; j < p.n; j += tn)
    for (std::int64_t i = 0; i < p.m; i += tm) {
      const std::int64_t rows = std::min(tm, p.m - i), cols = std::min(tn, p.n - j);
      for (std::int64_t l = 0; l < p.k; l += tk) {
        const std::int64_t depth = std::min(tk, p.k - l);
        product piece = {.m = rows, .n = cols, .k = depth, .a = panel_a, .b = panel_b, .c = part, .ldc = rows};
        piece.lda = bring(panel_a, p.a, p.lda, p.op_a, i, l, rows, depth);
        piece.ldb = bring(panel_b, p.b, p.ldb, p.op_b, l, j, depth, cols);
        if (tiles.as_stored) {
          piece.op_a = p.op_a;
          piece.op_b = p.op_b;
        }
        piece.beta.re = whole || l == 0 ? 0 : 1;
        if (const sg_status status = panels.run(piece, space); status != SG_STATUS_OK) return status;
        if (!whole) continue;
        auto *totals = reinterpret_cast<std::int32_t *>(sums);
        if (l == 0) std::fill_n(totals, rows * cols, 0);
        if (panels.out == SG_DTYPE_F32)
          simd().i32_add_f32(totals, static_cast<const float *>(part), rows * cols);
        else
          simd().add(sum_type, totals, part, rows * cols);
      }
      for (std::int64_t column = 0; column < cols; ++column)
        finish(static_cast<char *>(p.c) + (i + (j + column) * p.ldc) * element_size(out), out, p,
               sums + column * rows * sum_size, i, j + column, rows);
    }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
