// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/streaming/stream_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/gemm/resident/cost.hpp"
#include "plan/gemm/streaming/stream_layouts.hpp"
#include "plan/gemm/streaming/stream_memory.hpp"
#include "plan/gemm/streaming/stream_size.hpp"
#include "plan/gemm/streaming/tile_sizes.hpp"

namespace sg {
namespace {

constexpr double most_steps = 20000, most_steps_in_core = 600;
// Items below the first size are not split; above the second, tiles are tried besides panels.
constexpr double small_item = 256 << 10, large_item = 64 << 20;
constexpr std::int64_t most_paneled_items = 16;
constexpr std::int64_t most_item_groups = 128;

bool is_pageable(const problem &p) { return !(p.without_staging() == p); }

// Ways to stream. A requested way is searched in the same order as an unrequested one, and the best of each way is
// compared with the others in its final form, so that no requested way is faster than the planner's own choice.
enum class way : std::uint8_t { whole, m, n, k, batch, panels, tiles };
constexpr std::size_t ways = 7;

way way_of(split_kind kind) {
  switch (kind) {
    case split_kind::m: return way::m;
    case split_kind::n: return way::n;
    case split_kind::k: return way::k;
    case split_kind::batch: return way::batch;
    case split_kind::automatic:
    case split_kind::none: break;
  }
  return way::whole;
}

class stream_search {
 public:
  stream_search(const problem &p, const plan_terms &terms)
      : p_(p),
        quick_(p.without_staging()),
        terms_(terms),
        lanes_(terms.model.lanes_are_cores ? terms.lanes : 1),
        best_(ways, best_of_way{best_schedule(terms.model), {}}) {}

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
    if (is_empty()) refuse(least_needed_, 0);
    return take();
  }

 private:
  struct best_of_way {
    best_schedule fastest;
    stream_layout layout;
  };

  // `cut_short_at`: the command limit that excluded layouts with less memory; 0: none was excluded.
  [[noreturn]] void refuse(std::int64_t needed, std::int64_t cut_short_at) const {
    if (needed <= terms_.memory_limit)
      throw error(SG_STATUS_OUT_OF_MEMORY, "a schedule of this problem would have more than %lld commands",
                  static_cast<long long>(most_asked_commands));
    char reason[64] = "";
    if (cut_short_at > 0)
      std::snprintf(reason, sizeof reason, " (for at most %lld commands)", static_cast<long long>(cut_short_at));
    throw error(SG_STATUS_OUT_OF_MEMORY, "this problem needs at least %lld bytes of device memory%s, the limit is %lld",
                static_cast<long long>(needed), reason, static_cast<long long>(terms_.memory_limit));
  }

  bool is_empty() const {
    return std::all_of(best_.begin(), best_.end(), [](const best_of_way &b) { return b.fastest.empty(); });
  }

  // The fastest of all, with pageable operands staged.
  schedule take() {
    std::vector<best_of_way *> found;
    for (best_of_way &b : best_)
      if (!b.fastest.empty()) found.push_back(&b);
    std::stable_sort(found.begin(), found.end(), [](const best_of_way *x, const best_of_way *y) {
      return x->fastest.seconds() < y->fastest.seconds();
    });
    if (!is_pageable(p_)) return on_more_lanes(*found[0]);
    std::optional<schedule> fastest;
    for (best_of_way *b : found) {
      if (fastest && b->fastest.seconds() >= fastest->predicted_seconds) break;  // the host's copies only add to it
      const double commands = commands_when_staged(b->fastest.shown(), p_);
      if (commands > double(fastest ? most_commands : most_asked_commands)) continue;
      schedule staged = stage(b->layout);
      if (!fastest || staged.predicted_seconds < fastest->predicted_seconds) fastest = std::move(staged);
    }
    if (!fastest) refuse(0, 0);
    return std::move(*fastest);
  }

  // Where arithmetic is the bound, a second stream lets the next panel's GEMM fill idle multiprocessors of the last
  // wave. The model does not know this effect, so two streams are chosen where it predicts no difference. (H200: f32
  // 8192^3 23.6 ms with one, 23.2 with two. Where the link is the bound, a second one cost 5 to 10%. No record is
  // kept.)
  schedule on_more_lanes(best_of_way &best) const {
    const double bound = bound_seconds(terms_.model, {&p_, 1});
    if (!terms_.model.lanes_are_cores && terms_.lanes > 1 && link_seconds(terms_.model, p_) < 0.8 * bound) {
      best.fastest.require_margin(-best_schedule::usual_margin);
      best.fastest.offer(build_stream(p_, best.layout, terms_.model, 2));
    }
    return best.fastest.take();
  }

  schedule stage(const stream_layout &layout) const {
    best_schedule staged(terms_.model);
    staged.offer(build_stream(p_, layout, terms_.model, lanes_));
    return staged.take();
  }

  // Simulates a layout if it fits; returns its predicted seconds.
  double offer(way how, stream_layout layout) {
    const std::int64_t needed = fit_slots(quick_, layout, terms_.memory_limit);
    if (least_needed_ == 0 || needed < least_needed_) least_needed_ = needed;
    if (needed > terms_.memory_limit) return HUGE_VAL;
    if (commands_of(quick_, layout) > double(most_asked_commands)) return HUGE_VAL;
    best_of_way &best = best_[std::size_t(how)];
    const bool first = best.fastest.empty();
    const double before = first ? HUGE_VAL : best.fastest.seconds();
    const double seconds = best.fastest.offer(build_stream(quick_, layout, terms_.model, lanes_));
    if (first || best.fastest.seconds() < before) best.layout = std::move(layout);
    return seconds;
  }

  // Builds tiles only if their number is within the limit.
  void offer(way how, const tile_choice &tiles) {
    if (commands_of(quick_, tiles) <= double(most_asked_commands)) offer(how, tile_layout(p_, tiles));
  }

  double bytes(const operand &x) const { return problem::bytes(x, p_.batch); }

  void whole() {
    if (p_.batch > 1)
      offer(way::whole, item_layout(p_, 1));
    else
      offer(way::whole, tile_choice{p_.m, p_.n, std::max<std::int64_t>(1, p_.k), axis::m});
  }

  // Sizes that were not requested are as large as fits.
  void tiles_as_asked(std::int64_t m, std::int64_t n, std::int64_t k) {
    const tile_fit fit = fit_tiles(quick_, m, n, k, terms_.memory_limit, double(most_asked_commands));
    if (fit.bytes == 0)
      throw error(SG_STATUS_INVALID_ARGUMENT, "tiles this small would make more than %lld commands",
                  static_cast<long long>(most_asked_commands));
    if (!fit.fits) refuse(fit.bytes, fit.is_cut_short ? most_asked_commands : 0);
    offer_tiles(fit.tiles);
  }

  void offer_tiles(tile_choice tiles) {
    for (axis inner : {axis::m, axis::n}) {
      tiles.inner = inner;
      offer(way::tiles, tiles);
    }
  }

  std::int64_t extent_of(split_kind kind) const {
    switch (kind) {
      case split_kind::m: return p_.m;
      case split_kind::n: return p_.n;
      case split_kind::k: return p_.no_multiply ? 0 : p_.k;
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
      throw error(SG_STATUS_UNSUPPORTED, "cannot split %s = %lld into %lld parts", name_of_split(terms_.request),
                  static_cast<long long>(extent), static_cast<long long>(std::max<std::int64_t>(2, wanted)));
    if (wanted > 0)
      in_parts(kind, wanted);
    else
      in_some_parts(kind);
  }

  void in_parts(split_kind kind, std::int64_t parts) {
    if (kind == split_kind::batch)
      offer(way::batch, item_layout(p_, parts));
    else
      offer(way_of(kind), tile_choice{kind == split_kind::m ? ceil_div(p_.m, parts) : p_.m,
                                      kind == split_kind::n ? ceil_div(p_.n, parts) : p_.n,
                                      kind == split_kind::k ? ceil_div(p_.k, parts) : std::max<std::int64_t>(1, p_.k),
                                      kind == split_kind::n ? axis::n : axis::m});
  }

  // Tries a set of numbers of parts, if none is requested.
  void in_some_parts(split_kind kind) {
    const std::int64_t most =
        std::min<std::int64_t>(extent_of(kind), kind == split_kind::batch ? most_item_groups : 32);
    for (std::int64_t parts = 2; parts <= most; parts *= 2) {
      const best_schedule &best = best_[std::size_t(way_of(kind))].fastest;
      // With so many commands, any schedule that fits is accepted.
      if (!best.empty() && best.shown().commands.size() > std::size_t(most_commands)) return;
      in_parts(kind, parts);
    }
  }

  // Refuses problems that cannot fit before any layout is built; returns the tiles that always fit.
  tile_fit last_resort() {
    const tile_fit fit = fit_tiles(quick_, 0, 0, 0, terms_.memory_limit, double(most_commands));
    if (fit.fits) return fit;
    std::int64_t needed = fit.bytes;
    if (p_.batch > 1) {
      stream_layout items = item_layout(p_, std::min(p_.batch, most_item_groups));
      const std::int64_t needed_by_items = fit_slots(quick_, items, terms_.memory_limit);
      if (needed_by_items <= terms_.memory_limit) return fit;
      if (needed == 0 || needed_by_items < needed) needed = needed_by_items;
    }
    refuse(needed, fit.is_cut_short ? most_commands : 0);
  }

  void automatic() {
    const tile_fit resort = last_resort();
    whole();
    const double total = bytes(quick_.a) + bytes(quick_.b) + bytes(quick_.c);
    if (p_.batch > 1)
      in_some_parts(split_kind::batch);
    else if (total > small_item)
      for (split_kind kind : {split_kind::m, split_kind::n, split_kind::k}) in_some_parts(kind);
    const double item = total / double(p_.batch);
    const bool shares = is_shared(p_.a) || is_shared(p_.b);
    if (!p_.no_multiply && item > small_item && (p_.batch == 1 || (p_.batch <= most_paneled_items && !shares)))
      search_panels();
    if (is_empty() || item > large_item)
      for (const tile_choice &tiles : promising_tiles(quick_, terms_, is_empty() ? most_steps : most_steps_in_core))
        offer(way::tiles, tiles);
    if (is_empty() && resort.fits) offer_tiles(resort.tiles);
  }

  bool link_out_is_bound() const {
    return bytes_over_link(p_).out / terms_.model.link_out > 0.8 * bound_seconds(terms_.model, {&p_, 1});
  }

  // Coordinate descent over the parameters, from several starts.
  void search_panels() {
    const double bytes_of_batch = bytes(quick_.a) + bytes(quick_.b) + bytes(quick_.c);
    // Smaller panels are mostly latency.
    const auto most = std::int64_t(std::clamp(bytes_of_batch / double(1 << 19), 1.0, 64.0));
    const auto upto = [&](std::initializer_list<std::int64_t> all) {
      std::vector<std::int64_t> some;
      for (std::int64_t x : all)
        if (x <= most) some.push_back(x);
      return some;
    };
    const auto counts = upto({1, 2, 4, 8, 12, 16, 24, 32, 48, 64});
    const auto pieces = upto({1, 2, 4, 8, 16, 32});
    struct start {
      double outer;
      bool across;
    };
    for (axis along : {axis::n, axis::m})
      for (const auto [outer, across] : {start{0, false}, start{0.5, false}, start{0, true}}) {
        if (outer > 0 && accumulator_of(p_.c.type) != p_.c.type) continue;
        panel_choice now;
        now.along = along;
        now.across = across;
        now.panels = std::min<std::int64_t>(across ? 32 : 16, most);
        now.head = across ? 4 : 1;  // its results are copied out while the resident operand is still arriving
        now.outer = outer;
        now.pieces = now.outer_pieces = std::min<std::int64_t>(8, most);
        const bool stays_on_host = on_host(along == axis::n ? p_.a : p_.b);
        if (across && !(stays_on_host && link_out_is_bound())) continue;
        double seconds = offer(way::panels, panel_layout(p_, now));
        std::vector<panel_choice> tried = {now};
        const auto improve = [&](auto panel_choice::*field, auto values) {
          for (auto value : values) {
            panel_choice trial = now;
            trial.*field = value;
            if (std::find(tried.begin(), tried.end(), trial) != tried.end()) continue;  // not faster than `now`
            tried.push_back(trial);
            const double predicted = offer(way::panels, panel_layout(p_, trial));
            if (predicted < seconds) {
              seconds = predicted;
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

  const problem &p_;
  const problem quick_;
  const plan_terms &terms_;
  // Panels on one chip follow each other on one stream. With several streams a chip may complete later panels' GEMMs
  // before an earlier panel's, which delays all later copies out.
  const int lanes_;
  std::vector<best_of_way> best_;  // by way
  std::int64_t least_needed_ = 0;  // bytes, of the offered layouts
};

}  // namespace

schedule plan_stream(const problem &p, const plan_terms &terms) { return stream_search(p, terms).run(); }

}  // namespace sg
