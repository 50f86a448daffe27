// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/streaming/tile_sizes.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.hpp"
#include "plan/gemm/resident/cost.hpp"
#include "plan/gemm/streaming/stream_memory.hpp"
#include "plan/gemm/streaming/stream_size.hpp"

namespace sg {
namespace {

// Minimum tile size that the planner chooses itself.
constexpr std::int64_t least_tile = 16;
constexpr std::size_t most_promising = 8;

// The first tile of a layout is not always its largest: edges are rounded.
std::int64_t largest_of(std::int64_t total, std::int64_t tile) {
  std::int64_t most = 0;
  for (const range &r : cut_tiles(total, tile)) most = std::max(most, r.size);
  return most;
}

std::vector<std::int64_t> halvings(std::int64_t size) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t x = std::max<std::int64_t>(1, size);; x = ceil_div(x, 2)) {
    sizes.push_back(x);
    if (x <= least_tile) return sizes;
  }
}

// Traffic, arithmetic, and the part of both ends that cannot overlap. Infinite for tiles that do not fit twice.
double estimate(const problem &p, const plan_terms &terms, const tile_choice &t) {
  const device_model &model = terms.model;
  const double rows = double(ceil_div(p.m, t.tile_m)), cols = double(ceil_div(p.n, t.tile_n));
  const double depths = double(ceil_div(std::max<std::int64_t>(1, p.k), t.tile_k));
  const double steps = rows * cols * depths * double(p.batch);
  const auto panel_of = [](const operand &x, block w) {
    return on_host(x) ? double(w.rows) * double(w.cols) * double(size_of(x.type)) : 0.0;
  };
  const auto rate_of = [&](const operand &x, block w, bool in) {
    const std::int64_t size = size_of(x.type);
    return copy_rate(model, {w.rows * size, w.cols, w.rows * size, x.ld * size, in}, !in);
  };
  const auto bytes = [&](const operand &x) { return on_host(x) ? problem::bytes(x, p.batch) : 0.0; };
  const range m{0, t.tile_m}, n{0, t.tile_n}, k{0, t.tile_k};
  const block a = block_of_a(p, m, k), b = block_of_b(p, k, n), c = block_of_c(m, n);
  const double panel_a = panel_of(p.a, a), panel_b = panel_of(p.b, b), panel_c = panel_of(p.c, c);
  // The panels along the inner axis are read once for each outer tile if all of them fit.
  const double room = double(terms.memory_limit - bias_bytes(p)) - 2 * (panel_a + panel_b + panel_c);
  if (room < 0) return HUGE_VAL;
  const bool keeps_a = depths * panel_a <= room && t.inner == axis::n;
  const bool keeps_b = depths * panel_b <= room && t.inner == axis::m;
  const double in_a = p.no_multiply ? 0 : bytes(p.a) * (keeps_a ? 1 : cols);
  const double in_b = p.no_multiply ? 0 : bytes(p.b) * (keeps_b ? 1 : rows);
  double in = in_a / rate_of(p.a, a, true) + in_b / rate_of(p.b, b, true);
  if (!p.beta_zero) in += bytes(p.c) / rate_of(p.c, c, true);
  const double out = bytes(p.c) / rate_of(p.c, c, false);
  const double gemm_seconds_of_tile =
      p.no_multiply ? 0 : gemm_seconds(model, {t.tile_m, t.tile_n, t.tile_k, 1, p.a.type, p.c.type, p.compute, true});
  const double ends = (panel_a + panel_b) / model.link_in + gemm_seconds_of_tile + panel_c / model.link_out;
  return std::max({in + 3 * steps * model.copy_gap, out, steps * gemm_seconds_of_tile}) + ends;
}

}  // namespace

std::int64_t tile_bytes(const problem &p, const tile_choice &t) {
  const range m{0, largest_of(p.m, t.tile_m)}, n{0, largest_of(p.n, t.tile_n)};
  const range k{0, p.no_multiply ? 0 : largest_of(p.k, t.tile_k)};
  const auto panel_bytes = [](block w, sg_dtype type) {
    return round_up(checked_mul(checked_mul(w.rows, w.cols, "tile"), size_of(type), "tile"), 256);
  };
  std::int64_t bytes = bias_bytes(p);
  if (on_host(p.c)) bytes = checked_add(bytes, panel_bytes(block_of_c(m, n), p.c.type), "tile");
  if (!p.no_multiply && on_host(p.a)) bytes = checked_add(bytes, panel_bytes(block_of_a(p, m, k), p.a.type), "tile");
  if (!p.no_multiply && on_host(p.b)) bytes = checked_add(bytes, panel_bytes(block_of_b(p, k, n), p.b.type), "tile");
  const sg_dtype sum = accumulator_of(p.c.type);
  if (sum != p.c.type && k.size < p.k && !p.no_multiply)
    bytes += accumulators * (panel_bytes(block_of_c(m, n), p.c.type) / size_of(p.c.type) * size_of(sum));
  return bytes;
}

tile_fit fit_tiles(const problem &p, std::int64_t asked_m, std::int64_t asked_n, std::int64_t asked_k,
                   std::int64_t limit, double most_commands) {
  const auto size_of_tile = [](std::int64_t requested, std::int64_t all) {
    return std::max<std::int64_t>(1, requested > 0 ? std::min(requested, all) : all);
  };
  tile_fit now;
  now.tiles = {size_of_tile(asked_m, p.m), size_of_tile(asked_n, p.n), size_of_tile(asked_k, p.k), axis::m};
  if (commands_of(p, now.tiles) > most_commands) {
    now.is_cut_short = true;
    return now;
  }
  now.bytes = tile_bytes(p, now.tiles);
  const std::pair<std::int64_t, std::int64_t tile_choice::*> sides[] = {
      {asked_m, &tile_choice::tile_m}, {asked_n, &tile_choice::tile_n}, {asked_k, &tile_choice::tile_k}};
  for (;;) {
    now.fits = now.bytes <= limit;
    if (now.fits) return now;
    // Halves the dimension that frees the most memory; of equal ones, the longest.
    tile_fit next;
    std::int64_t longest = 0;
    for (const auto &[requested, side] : sides) {
      const std::int64_t length = now.tiles.*side;
      if (requested > 0 || length <= least_tile) continue;
      tile_choice tiles = now.tiles;
      tiles.*side = ceil_div(length, 2);
      if (commands_of(p, tiles) > most_commands) {
        now.is_cut_short = true;
        continue;
      }
      const std::int64_t bytes = tile_bytes(p, tiles);
      if (bytes >= now.bytes) continue;
      if (longest > 0 && (bytes > next.bytes || (bytes == next.bytes && length <= longest))) continue;
      next.tiles = tiles;
      next.bytes = bytes;
      longest = length;
    }
    if (longest == 0) return now;
    now = next;
  }
}

std::vector<tile_choice> promising_tiles(const problem &p, const plan_terms &terms, double most_gemms) {
  struct estimated {
    tile_choice tiles;
    double seconds;
  };
  std::vector<estimated> all;
  for (std::int64_t m : halvings(p.m))
    for (std::int64_t n : halvings(p.n))
      for (std::int64_t k : halvings(p.k)) {
        const double gemms = double(ceil_div(p.m, m)) * double(ceil_div(p.n, n)) *
                             double(ceil_div(std::max<std::int64_t>(1, p.k), k)) * double(p.batch);
        if (gemms > most_gemms) continue;
        for (axis inner : {axis::m, axis::n}) {
          const tile_choice tiles{m, n, k, inner};
          const double seconds = estimate(p, terms, tiles);
          if (seconds < HUGE_VAL) all.push_back({tiles, seconds});
        }
      }
  std::stable_sort(all.begin(), all.end(),
                   [](const estimated &a, const estimated &b) { return a.seconds < b.seconds; });
  std::vector<tile_choice> best;
  for (std::size_t i = 0; i < std::min(most_promising, all.size()); ++i) best.push_back(all[i].tiles);
  return best;
}

}  // namespace sg
