// SPDX-License-Identifier: Apache-2.0
#include "plan/stream_search.hpp"

#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/cost.hpp"
#include "plan/stream_layouts.hpp"
#include "plan/stream_memory.hpp"

namespace sg {
namespace {

// Tiles are not made smaller than this by the planner.
constexpr std::int64_t least_tile = 16;
// Tile sizes that are estimated best are simulated; so many of them.
constexpr std::size_t simulated_tiles = 8;
// A schedule never has more products than this; the planner's own choices have fewer.
constexpr double most_products = 200000;
constexpr double most_steps = 20000, most_steps_in_core = 600;
// Bytes of an item below which it is not cut, and above which tiles are tried beside panels.
constexpr double small_item = 256 << 10, large_item = 64 << 20;
constexpr std::int64_t most_paneled_items = 16;

// The problem as if its pageable operands were pinned: searching needs no staging commands, of which there are many.
problem pinned(problem p) {
  for (operand *x : {&p.a, &p.b, &p.c})
    if (x->place == SG_MEMORY_PAGEABLE) x->place = SG_MEMORY_PINNED;
  return p;
}

bool is_pageable(const problem &p) { return !(pinned(p) == p); }

class stream_search {
 public:
  stream_search(const problem &p, const plan_terms &terms)
      : p_(p), quick_(pinned(p)), terms_(terms), lanes_(terms.model.lanes_are_cores ? terms.lanes : 1),
        best_(terms.model) {}

  schedule run() {
    const plan_request &r = terms_.request;
    if (r.tile_m > 0 || r.tile_n > 0 || r.tile_k > 0)
      tiles_as_asked(r.tile_m, r.tile_n, r.tile_k);
    else if (r.split == split_kind::none)
      whole();
    else if (r.split != split_kind::automatic)
      forced(r.split);
    else
      automatic();
    if (best_.empty())
      throw error(SG_STATUS_OUT_OF_MEMORY, "this problem needs at least %lld bytes of device memory, the limit is %lld",
                  static_cast<long long>(least_needed_), static_cast<long long>(terms_.memory_limit));
    if (!is_pageable(p_)) return best_.take();
    best_schedule staged(terms_.model);
    for (worker_use use : {worker_use::together, worker_use::apart})
      staged.offer(build_stream(p_, best_layout_, terms_.model, lanes_, use));
    return staged.take();
  }

 private:
  // Simulates a layout if it fits; returns its predicted seconds.
  double offer(stream_layout layout) {
    const std::int64_t needed = fit_slots(quick_, layout, terms_.memory_limit);
    if (least_needed_ == 0 || needed < least_needed_) least_needed_ = needed;
    if (needed > terms_.memory_limit) return HUGE_VAL;
    const bool first = best_.empty();
    const double before = first ? HUGE_VAL : best_.seconds();
    const double seconds = best_.offer(build_stream(quick_, layout, terms_.model, lanes_));
    if (first || best_.seconds() < before) best_layout_ = std::move(layout);
    return seconds;
  }

  double bytes(const operand &x) const { return problem::bytes(x, p_.batch); }

  void whole() {
    if (p_.batch > 1)
      offer(item_layout(p_, 1));
    else
      offer(tile_layout(p_, {p_.m, p_.n, std::max<std::int64_t>(1, p_.k), axis::m}));
  }

  double products(const tile_choice &t) const {
    return double(ceil_div(p_.m, t.tile_m)) * double(ceil_div(p_.n, t.tile_n)) *
           double(ceil_div(std::max<std::int64_t>(1, p_.k), std::max<std::int64_t>(1, t.tile_k))) * double(p_.batch);
  }

  void tiles_as_asked(std::int64_t m, std::int64_t n, std::int64_t k) {
    // What was not asked for is as large as fits.
    std::int64_t tile_m = m > 0 ? std::min(m, p_.m) : p_.m, tile_n = n > 0 ? std::min(n, p_.n) : p_.n;
    std::int64_t tile_k = k > 0 ? std::min(k, p_.k) : p_.k;
    for (;;) {
      if (products({tile_m, tile_n, tile_k, axis::m}) > most_products) {
        if (m == 0 && n == 0 && k == 0) return;
        throw error(SG_STATUS_INVALID_ARGUMENT, "tiles this small would make more than %.0f products", most_products);
      }
      for (axis inner : {axis::m, axis::n}) offer(tile_layout(p_, {tile_m, tile_n, tile_k, inner}));
      if (!best_.empty()) return;
      std::int64_t *largest = nullptr;
      for (auto [asked, tile] : {std::pair{m, &tile_m}, {n, &tile_n}, {k, &tile_k}})
        if (asked <= 0 && *tile > least_tile && (!largest || *tile > *largest)) largest = tile;
      if (!largest) return;
      *largest = ceil_div(*largest, 2);
    }
  }

  std::int64_t extent_of(split_kind kind) const {
    switch (kind) {
      case split_kind::m: return p_.m;
      case split_kind::n: return p_.n;
      case split_kind::k: return p_.no_product ? 0 : p_.k;
      case split_kind::batch: return p_.batch;
      case split_kind::automatic:
      case split_kind::none: break;
    }
    return 1;
  }

  void forced(split_kind kind) {
    const std::int64_t extent = extent_of(kind);
    const std::int64_t wanted = terms_.request.parts;
    if (extent < std::max<std::int64_t>(2, wanted))
      throw error(SG_STATUS_UNSUPPORTED, "a dimension of %lld cannot be split into %lld parts",
                  static_cast<long long>(extent), static_cast<long long>(std::max<std::int64_t>(2, wanted)));
    if (wanted > 0) return in_parts(kind, wanted);
    for (std::int64_t parts : {2, 4, 8, 16, 32})
      if (parts <= extent) in_parts(kind, parts);
  }

  void in_parts(split_kind kind, std::int64_t parts) {
    if (kind == split_kind::batch)
      offer(item_layout(p_, parts));
    else
      offer(tile_layout(p_, {kind == split_kind::m ? ceil_div(p_.m, parts) : p_.m,
                             kind == split_kind::n ? ceil_div(p_.n, parts) : p_.n,
                             kind == split_kind::k ? ceil_div(p_.k, parts) : std::max<std::int64_t>(1, p_.k),
                             kind == split_kind::n ? axis::n : axis::m}));
  }

  void automatic() {
    whole();
    const double total = bytes(p_.a) + bytes(p_.b) + bytes(p_.c);
    if (p_.batch > 1)
      for (std::int64_t groups = 2; groups <= std::min<std::int64_t>(p_.batch, 128); groups *= 2)
        offer(item_layout(p_, groups));
    else if (total > small_item)
      for (split_kind kind : {split_kind::m, split_kind::n, split_kind::k})
        for (std::int64_t parts : {2, 4, 8, 16, 32})
          if (parts <= extent_of(kind)) in_parts(kind, parts);
    const double item = total / double(p_.batch);
    const bool shares = is_shared(p_.a) || is_shared(p_.b);
    if (!p_.no_product && item > small_item && (p_.batch == 1 || (p_.batch <= most_paneled_items && !shares)))
      search_panels();
    if (best_.empty() || item > large_item) search_tiles(best_.empty() ? most_steps : most_steps_in_core);
    if (best_.empty()) tiles_as_asked(0, 0, 0);
  }

  // One parameter after the other, each at its best value with the others held, from several starts.
  void search_panels() {
    const double bytes_of_batch = bytes(p_.a) + bytes(p_.b) + bytes(p_.c);
    // A panel below this is mostly latency.
    const auto most = std::int64_t(std::clamp(bytes_of_batch / double(1 << 19), 1.0, 64.0));
    const auto upto = [&](std::initializer_list<std::int64_t> all) {
      std::vector<std::int64_t> some;
      for (std::int64_t x : all)
        if (x <= most) some.push_back(x);
      return some;
    };
    const auto counts = upto({1, 2, 4, 8, 12, 16, 24, 32, 48, 64});
    const auto pieces = upto({1, 2, 4, 8, 16, 32});
    for (axis along : {axis::n, axis::m})
      for (double outer : {0.0, 0.5}) {
        if (outer > 0 && accumulator_of(p_.c.type) != p_.c.type) continue;
        panel_choice now;
        now.along = along;
        now.panels = std::min<std::int64_t>(16, most);
        now.outer = outer;
        now.pieces = now.outer_pieces = std::min<std::int64_t>(8, most);
        const bool stays_on_host = on_host(along == axis::n ? p_.a : p_.b);
        double seconds = offer(panel_layout(p_, now));
        const auto improve = [&](auto panel_choice::*field, auto values) {
          for (auto value : values) {
            panel_choice trial = now;
            trial.*field = value;
            if (trial == now) continue;
            const double tried = offer(panel_layout(p_, trial));
            if (tried < seconds) {
              seconds = tried;
              now = trial;
            }
          }
        };
        for (int round = 0; round < (p_.batch == 1 ? 2 : 1); ++round) {
          const panel_choice before = now;
          improve(&panel_choice::panels, counts);
          if (stays_on_host) improve(&panel_choice::pieces, pieces);
          if (outer > 0) improve(&panel_choice::outer, std::vector<double>{0.25, 0.5, 0.75, 0.875});
          if (outer > 0) improve(&panel_choice::outer_pieces, pieces);
          improve(&panel_choice::head, std::vector<double>{0.5, 1, 2, 4});
          improve(&panel_choice::taper, std::vector<bool>{false, true});
          if (now == before) break;
        }
      }
  }

  // Tiles by halving each dimension; those that a rough estimate likes best are simulated.
  void search_tiles(double steps_allowed) {
    struct estimate {
      tile_choice choice;
      double seconds;
    };
    std::vector<estimate> estimates;
    const auto halvings = [](std::int64_t size) {
      std::vector<std::int64_t> sizes;
      for (std::int64_t x = std::max<std::int64_t>(1, size);; x = ceil_div(x, 2)) {
        sizes.push_back(x);
        if (x <= least_tile) return sizes;
      }
    };
    for (std::int64_t m : halvings(p_.m))
      for (std::int64_t n : halvings(p_.n))
        for (std::int64_t k : halvings(p_.k))
          for (axis inner : {axis::m, axis::n}) {
            const tile_choice choice{m, n, k, inner};
            const double seconds = estimate_tiles(choice, steps_allowed);
            if (seconds < HUGE_VAL) estimates.push_back({choice, seconds});
          }
    std::stable_sort(estimates.begin(), estimates.end(),
                     [](const estimate &a, const estimate &b) { return a.seconds < b.seconds; });
    for (std::size_t i = 0; i < std::min(simulated_tiles, estimates.size()); ++i)
      offer(tile_layout(p_, estimates[i].choice));
  }

  // Traffic, arithmetic, and what cannot be hidden at either end. Infinite for tiles that do not fit twice.
  double estimate_tiles(const tile_choice &t, double steps_allowed) const {
    const device_model &model = terms_.model;
    const double rows = double(ceil_div(p_.m, t.tile_m)), cols = double(ceil_div(p_.n, t.tile_n));
    const double depths = double(ceil_div(std::max<std::int64_t>(1, p_.k), t.tile_k));
    const double steps = products(t);
    if (steps > steps_allowed) return HUGE_VAL;
    const auto panel_of = [](const operand &x, block w) {
      return on_host(x) ? double(w.rows) * double(w.cols) * double(size_of(x.type)) : 0.0;
    };
    const auto rate_of = [&](const operand &x, block w, bool in) {
      const std::int64_t size = size_of(x.type);
      return copy_rate(model, {w.rows * size, w.cols, w.rows * size, x.ld * size, in}, !in);
    };
    const range m{0, t.tile_m}, n{0, t.tile_n}, k{0, t.tile_k};
    const block a = block_of_a(p_, m, k), b = block_of_b(p_, k, n), c = block_of_c(m, n);
    const double panel_a = panel_of(p_.a, a), panel_b = panel_of(p_.b, b), panel_c = panel_of(p_.c, c);
    if (2 * (panel_a + panel_b + panel_c) > double(terms_.memory_limit)) return HUGE_VAL;
    // The panels that stay along the inner axis are read once for each outer tile when the whole row of them fits.
    const double room = double(terms_.memory_limit) - 2 * (panel_a + panel_b + panel_c);
    const bool keeps_a = depths * panel_a <= room && t.inner == axis::n;
    const bool keeps_b = depths * panel_b <= room && t.inner == axis::m;
    const double in_a = p_.no_product ? 0 : bytes(p_.a) * double(on_host(p_.a)) * (keeps_a ? 1 : cols);
    const double in_b = p_.no_product ? 0 : bytes(p_.b) * double(on_host(p_.b)) * (keeps_b ? 1 : rows);
    const double c_bytes = bytes(p_.c) * double(on_host(p_.c));
    double in = in_a / rate_of(p_.a, a, true) + in_b / rate_of(p_.b, b, true);
    if (!p_.beta_zero) in += c_bytes / rate_of(p_.c, c, true);
    const double out = c_bytes / rate_of(p_.c, c, false);
    const double product =
        p_.no_product ? 0
                      : gemm_seconds(model, {t.tile_m, t.tile_n, t.tile_k, 1, p_.a.type, p_.c.type, p_.compute, true});
    const double ends = (panel_a + panel_b) / model.link_in + product + panel_c / model.link_out;
    return std::max({in + 3 * steps * model.copy_gap, out, steps * product}) + ends;
  }

  const problem &p_;
  const problem quick_;
  const plan_terms &terms_;
  // Panels of one chip follow each other on one stream. On several, a chip may run later panels' products to their end
  // before an earlier panel's, which everything that leaves in order then waits for.
  const int lanes_;
  best_schedule best_;
  stream_layout best_layout_;
  std::int64_t least_needed_ = 0;
};

}  // namespace

schedule plan_stream(const problem &p, const plan_terms &terms) { return stream_search(p, terms).run(); }

}  // namespace sg
