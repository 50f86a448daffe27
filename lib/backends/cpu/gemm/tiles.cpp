// SPDX-License-Identifier: Apache-2.0
#include "tiles.hpp"

#include <algorithm>

#include "backends/cpu/elements/epilogue.hpp"
#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/workspace.hpp"

namespace sg::cpu {
namespace {

// Rows [row, row + n) of a column of C = alpha * sums + beta * C and the epilogue, rounded once.
void finish(void *c, sg_dtype out, const gemm_args &p, void *sums, std::int64_t row, std::int64_t column,
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

constexpr std::int64_t ceil_div(std::int64_t x, std::int64_t y) noexcept { return (x + y - 1) / y; }
constexpr std::int64_t round_up(std::int64_t x, std::int64_t multiple) noexcept {
  return ceil_div(x, multiple) * multiple;
}

// The arrangement of tiles, and the packed panels that are kept for later tiles. Sides are those of panels.
struct arrangement {
  std::int64_t m, n, k;  // maximum of a tile
  std::int64_t rows;     // rows of A whose tiles are computed before the next column of tiles
  bool keeps_a = false;  // all panels of these rows are kept until the last column
  bool keeps_b = false;  // all panels of a column of tiles are kept for these rows
  std::int64_t panel_size;

  // `most_bytes`: limit of a worker's kept panels.
  arrangement(std::int64_t all_m, std::int64_t all_n, std::int64_t all_k, const tiling &tiles,
              std::int64_t element_bytes, std::int64_t most_bytes) noexcept
      : m(std::min(tiles.kept, all_m)),
        n(std::min(tiles.kept, all_n)),
        k(std::min(tiles.k, all_k)),
        rows(all_m),
        panel_size(element_bytes) {
    const std::int64_t most = most_bytes / panel_size / all_k;  // rows of A and columns of B
    if (all_n <= n) {
      keeps_b = most >= n;
    } else if (most >= n + std::min(all_m, 4 * m)) {  // with fewer rows, B's columns would be packed too often
      const std::int64_t blocks = ceil_div(all_m, (most - n) / m * m);
      rows = round_up(ceil_div(all_m, blocks), m);
      keeps_a = keeps_b = true;
    }
    if (keeps_b) return;
    m = std::min(tiles.m, all_m);
    n = std::min(tiles.n, all_n);
  }

  std::int64_t bytes_a(std::int64_t depth) const noexcept { return (keeps_a ? rows * depth : m * k) * panel_size; }
  std::int64_t bytes_b(std::int64_t depth) const noexcept { return (keeps_b ? depth : k) * n * panel_size; }
};

}  // namespace

sg_status run_tiles(const gemm_args &p, sg_dtype in, sg_dtype out, const kernel &panels, const tiling &tiles,
                    workspace &space) noexcept {
  constexpr std::int64_t most_kept_bytes = std::int64_t{16} << 20;
  const sg_dtype sum_type = sum_type_of(out);
  const std::int64_t panel_size = element_size(panels.in), sum_size = element_size(sum_type);
  // i8 by f32 kernels: each part is computed in a separate buffer and added as integers.
  const bool whole = panels.out != sum_type;
  const panel_layout &layout = panels.layout;
  const std::int64_t all_k = round_up(p.k, layout.along);
  char *panels_a = nullptr, *panels_b = nullptr, *sums = nullptr, *converted = nullptr;
  const auto take_room = [&](const arrangement &as) {
    const auto get = [&](scratch use, std::int64_t bytes) {
      return static_cast<char *>(space.get(use, static_cast<std::size_t>(bytes)));
    };
    panels_a = get(scratch::panel_a, as.bytes_a(all_k));
    panels_b = get(scratch::panel_b, as.bytes_b(all_k));
    sums = get(scratch::sums, as.m * as.n * sum_size * (whole ? 2 : 1));
    const bool converts = layout.pack_a != nullptr && in != panels.in;
    if (converts) converted = get(scratch::converted, std::max(as.m, as.n) * as.k * panel_size);
    return panels_a != nullptr && panels_b != nullptr && sums != nullptr && (!converts || converted != nullptr);
  };
  const auto arranged = [&](std::int64_t most_bytes) {
    return arrangement(round_up(p.m, layout.across), round_up(p.n, layout.across), all_k, tiles, panel_size,
                       most_bytes);
  };
  arrangement as = arranged(most_kept_bytes);
  if (!take_room(as)) {
    as = arranged(0);
    if (!take_room(as)) return SG_STATUS_OUT_OF_MEMORY;
  }
  void *part = whole ? sums + as.m * as.n * sum_size : sums;
  const auto bring = [&](void *panel, const block &of, auto *pack_for_kernel) {
    if (pack_for_kernel == nullptr) return pack(panel, panels.in, of);
    if (in == panels.in) return pack_for_kernel(panel, of);
    pack(converted, panels.in, of);
    pack_for_kernel(panel, {.x = converted, .type = panels.in, .ld = of.rows, .rows = of.rows, .cols = of.cols});
  };

  const auto compute_tile = [&](std::int64_t i, std::int64_t first_i, std::int64_t j) {
    const std::int64_t rows = std::min(as.m, p.m - i), cols = std::min(as.n, p.n - j);
    const std::int64_t panel_rows = round_up(rows, layout.across), panel_cols = round_up(cols, layout.across);
    for (std::int64_t l = 0; l < p.k; l += as.k) {
      const std::int64_t depth = std::min(as.k, p.k - l), panel_depth = round_up(depth, layout.along);
      char *const panel_a = panels_a + (as.keeps_a ? ((i - first_i) * all_k + l * panel_rows) * panel_size : 0);
      char *const panel_b = panels_b + (as.keeps_b ? l * panel_cols * panel_size : 0);
      if (!as.keeps_a || j == 0) bring(panel_a, {p.a, in, p.lda, p.op_a, i, l, rows, depth}, layout.pack_a);
      if (!as.keeps_b || i == first_i) bring(panel_b, {p.b, in, p.ldb, p.op_b, l, j, depth, cols}, layout.pack_b);
      gemm_args piece = {.m = panel_rows,
                         .n = panel_cols,
                         .k = panel_depth,
                         .a = panel_a,
                         .b = panel_b,
                         .c = part,
                         .lda = panel_rows,
                         .ldb = panel_depth,
                         .ldc = panel_rows};
      piece.beta.re = whole || l == 0 ? 0 : 1;
      if (const sg_status status = panels.run(piece, space); status != SG_STATUS_OK) return status;
      if (!whole) continue;
      auto *totals = reinterpret_cast<std::int32_t *>(sums);
      if (l == 0) std::fill_n(totals, panel_rows * panel_cols, 0);
      simd().i32_add_f32(totals, static_cast<const float *>(part), panel_rows * panel_cols);
    }
    for (std::int64_t column = 0; column < cols; ++column)
      finish(static_cast<char *>(p.c) + (i + (j + column) * p.ldc) * element_size(out), out, p,
             sums + column * panel_rows * sum_size, i, j + column, rows);
    return SG_STATUS_OK;
  };

  for (std::int64_t first_i = 0; first_i < p.m; first_i += as.rows)
    for (std::int64_t j = 0; j < p.n; j += as.n)
      for (std::int64_t i = first_i; i < std::min(first_i + as.rows, p.m); i += as.m) {
        if (space.is_stopped()) return SG_STATUS_CANCELLED;
        if (const sg_status status = compute_tile(i, first_i, j); status != SG_STATUS_OK) return status;
      }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
