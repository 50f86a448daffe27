// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/spread/spread.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/log.hpp"
#include "ops/gemm.hpp"
#include "plan/gemm/spread/device_sets.hpp"
#include "plan/gemm/spread/join.hpp"
#include "plan/gemm/streaming/stream_memory.hpp"
#include "plan/gemm/streaming/stream_size.hpp"
#include "plan/gemm/streaming/tile_sizes.hpp"
#include "plan/schedule/lanes.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {
namespace {

constexpr int most_simulations = 60;
constexpr double most_commands_of_device = 20'000;

bool is_on_host(const problem &p) {
  return on_host(p.c) && (!p.has_bias() || on_host(p.bias)) && (p.no_multiply || (on_host(p.a) && on_host(p.b)));
}

// Several devices share the workers.
device_model with_fair_workers(const machine_model &machine, device_index device, std::size_t devices) {
  device_model model = machine.device(device);
  const std::int32_t all = workers_of(machine);
  if (devices == 1 || all == 0) return model;
  const std::int32_t fair = std::max(1, all / std::int32_t(devices));
  model.staging_workers = std::min({model.staging_workers, most_workers_of_device, fair});
  return model;
}

stream_layout layout_of(const problem &p, const spread_choice &choice) {
  if (choice.groups > 0) return item_layout(p, choice.groups);
  return choice.tiles ? tile_layout(p, *choice.tiles) : panel_layout(p, choice.panels);
}

class spread_search {
 public:
  spread_search(const problem &p, const machine_model &machine, std::span<const device_index> devices,
                const plan_request &request, memory_limits limits)
      : p_(p),
        quick_(p.without_staging()),
        machine_(machine),
        devices_(devices.begin(), devices.end()),
        request_(request),
        limits_(limits) {
    for (const device_index each : devices_)
      shares_.push_back(p.no_multiply ? 1 : gemm_rate_of(machine.device(each), quick_.a.type, quick_.compute));
  }

  std::optional<schedule> run() {
    search();
    if (!best_) return std::nullopt;
    pace();
    balance();
    auto made = build_spread(p_, machine_, devices_, shares_, best_->choice, limits_);
    if (made) made->predicted_seconds = simulate(*made, machine_).seconds;
    return made;
  }

 private:
  struct candidate {
    spread_choice choice;
    double seconds = HUGE_VAL;
    std::vector<double> ends;  // of each device's last command
  };

  candidate tried(const spread_choice &choice, std::span<const double> shares) {
    candidate made{choice, HUGE_VAL, {}};
    ++simulations_;
    const auto s = build_spread(quick_, machine_, devices_, shares, choice, limits_);
    if (!s) return made;
    const timeline t = simulate(*s, machine_);
    made.seconds = t.seconds;
    made.ends.assign(machine_.devices.size(), 0);
    for (const interval &each : t.commands) {
      double &end = made.ends[number_of(each.where.device)];
      end = std::max(end, each.end);
    }
    if (logs(log_level::debug, log_area::plan))
      log_message(log_level::debug, log_area::plan, "candidate %s: predicted %.2f us, %zu commands",
                  s->strategy.c_str(), made.seconds * 1e6, s->commands.size());
    return made;
  }

  double offer(const spread_choice &choice) {
    candidate made = tried(choice, shares_);
    const double seconds = made.seconds;
    if (seconds < HUGE_VAL && (!best_ || seconds < best_->seconds)) best_ = std::move(made);
    return seconds;
  }

  std::vector<spread_choice> ways() const {
    std::vector<spread_axis> axes;
    const bool any = request_.split == split_kind::automatic || request_.split == split_kind::none;
    const auto count = std::int64_t(devices_.size());
    if ((any || request_.split == split_kind::batch) && p_.batch >= count) axes.push_back(spread_axis::items);
    if ((any || request_.split == split_kind::n) && p_.n >= count) axes.push_back(spread_axis::n);
    if ((any || request_.split == split_kind::m) && p_.m >= count) axes.push_back(spread_axis::m);
    std::vector<spread_choice> all;
    for (const spread_axis axis : axes)
      for (const bool by_peers : {true, false}) {
        if (by_peers && shared_operands(p_, axis) == 0) continue;
        spread_choice choice;
        choice.axis = axis;
        choice.by_peers = by_peers;
        choice.panels.along = axis == spread_axis::m ? sg::axis::m : sg::axis::n;
        all.push_back(choice);
      }
    return all;
  }

  void search() {
    const bool by_tiles = request_.tile_m > 0 || request_.tile_n > 0 || request_.tile_k > 0;
    std::vector<std::pair<double, spread_choice>> starts;
    for (spread_choice &way : ways()) {
      if (by_tiles)
        offer_tiles(way);
      else if (p_.batch > 1 || p_.no_multiply)
        offer_groups(way);
      else
        for (const spread_choice &start : panel_starts(way)) starts.emplace_back(offer(start), start);
    }
    std::stable_sort(starts.begin(), starts.end(), [](const auto &x, const auto &y) { return x.first < y.first; });
    for (const auto &[seconds, start] : starts)
      if (seconds < HUGE_VAL && simulations_ < most_simulations) improve(start, seconds);
    if (!best_ && !by_tiles)
      for (const spread_choice &way : ways()) offer_tiles(way);
  }

  void offer_groups(spread_choice way) {
    if (p_.batch == 1) {
      way.tiles = tile_choice{p_.m, std::max<std::int64_t>(1, p_.n / 8), std::max<std::int64_t>(1, p_.k), axis::m};
      offer(way);
      return;
    }
    const std::int64_t items = way.axis == spread_axis::items ? p_.batch / std::int64_t(devices_.size()) : p_.batch;
    for (way.groups = 1; way.groups <= std::min<std::int64_t>(items, 64); way.groups *= 4) offer(way);
  }

  // As large as fits the smallest device.
  void offer_tiles(spread_choice way) {
    const std::int64_t limit =
        std::accumulate(devices_.begin(), devices_.end(), std::int64_t(INT64_MAX),
                        [&](std::int64_t least, device_index d) { return std::min(least, limits_[number_of(d)]); });
    const tile_fit fit = fit_tiles(cut_problem(quick_, way.axis, devices_, shares_).front().p, request_.tile_m,
                                   request_.tile_n, request_.tile_k, limit, most_commands_of_device);
    if (fit.bytes == 0 || !fit.fits) return;
    for (const axis inner : {axis::m, axis::n}) {
      way.tiles = fit.tiles;
      way.tiles->inner = inner;
      offer(way);
    }
  }

  std::int64_t most_panels() const {
    const double bytes = bytes_of(quick_.a) + bytes_of(quick_.b) + bytes_of(quick_.c);
    return std::int64_t(std::clamp(bytes / double(1 << 19) / double(devices_.size()), 1.0, 64.0));
  }

  std::vector<spread_choice> panel_starts(const spread_choice &way) const {
    const std::int64_t most = most_panels();
    const auto start = [&](double outer, bool across, std::int64_t panels, std::int64_t pieces, double head) {
      spread_choice made = way;
      made.panels.outer = outer;
      made.panels.across = across;
      made.panels.panels = std::min(panels, most);
      made.panels.pieces = made.panels.outer_pieces = std::min(pieces, most);
      made.panels.head = head;
      return made;
    };
    std::vector<spread_choice> starts{start(0, false, 16, 2, 1), start(0, true, 32, 8, 4)};
    if (accumulator_of(p_.c.type) == p_.c.type) starts.push_back(start(0.5, false, 8, 8, 1));
    return starts;
  }

  // Coordinate descent over the parameters of the panels.
  void improve(spread_choice now, double seconds) {
    const std::int64_t most = most_panels();
    const auto improved = [&](auto panel_choice::*field, auto values) {
      for (auto value : values) {
        spread_choice trial = now;
        trial.panels.*field = value;
        if (trial.panels == now.panels || simulations_ >= most_simulations) continue;
        const double tried = offer(trial);
        if (tried < seconds) seconds = tried, now = trial;
      }
    };
    const auto upto = [&](std::initializer_list<std::int64_t> all) {
      std::vector<std::int64_t> some;
      for (const std::int64_t x : all)
        if (x <= most) some.push_back(x);
      return some;
    };
    improved(&panel_choice::taper, std::vector<bool>{true});
    improved(&panel_choice::panels, upto({4, 8, 12, 16, 24, 32, 48}));
    improved(&panel_choice::pieces, upto({1, 2, 4, 8, 16}));
    if (now.panels.outer > 0) improved(&panel_choice::outer_pieces, upto({4, 8, 16, 32}));
    if (now.panels.outer > 0) improved(&panel_choice::outer, std::vector<double>{0.25, 0.5, 0.75, 0.875});
    improved(&panel_choice::head, std::vector<double>{0.5, 1, 2, 4});
  }

  void pace() {
    spread_choice trial = best_->choice;
    for (trial.ahead = 1; trial.ahead <= 8; trial.ahead *= 2) offer(trial);
  }

  // Moves work from devices that are done late to those that are done early.
  void balance() {
    for (int round = 0; round < 2; ++round) {
      std::vector<double> shares = shares_;
      double latest = 0, earliest = HUGE_VAL;
      for (std::size_t i = 0; i < devices_.size(); ++i) {
        const double end = best_->ends[number_of(devices_[i])];
        if (end <= 0) return;
        latest = std::max(latest, end), earliest = std::min(earliest, end);
        shares[i] *= best_->seconds / end;
      }
      if (latest < earliest * 1.02) return;
      candidate made = tried(best_->choice, shares);
      if (made.seconds >= best_->seconds) return;
      best_ = std::move(made);
      shares_ = std::move(shares);
    }
  }

  const problem &p_;
  const problem quick_;
  const machine_model &machine_;
  const std::vector<device_index> devices_;
  const plan_request &request_;
  const memory_limits limits_;
  std::vector<double> shares_;
  std::optional<candidate> best_;
  int simulations_ = 0;
};

}  // namespace

std::optional<schedule> build_spread(const problem &p, const machine_model &machine,
                                     std::span<const device_index> devices, std::span<const double> shares,
                                     const spread_choice &choice, memory_limits limits) {
  const problem quick = p.without_staging();
  std::vector<device_schedule> parts;
  std::vector<device_index> used;
  for (problem_part &part : cut_problem(p, choice.axis, devices, shares)) {
    const std::int64_t limit = limits[number_of(part.device)];
    const problem as_pinned = part.p.without_staging();
    stream_layout layout = layout_of(as_pinned, choice);
    if (commands_of(as_pinned, layout) > most_commands_of_device || fit_slots(as_pinned, layout, limit) > limit)
      return std::nullopt;
    const device_model model = with_fair_workers(machine, part.device, devices.size());
    used.push_back(part.device);
    parts.push_back({part, build_stream(part.p, layout, model, 1)});
  }
  return join(p, parts, choice.by_peers ? shared_operands(quick, choice.axis) : 0, rates_together(machine, used).in,
              choice.ahead);
}

std::optional<schedule> plan_spread(const problem &p, const machine_model &machine,
                                    std::span<const device_index> devices, const plan_request &request,
                                    memory_limits limits) {
  if (!is_on_host(p) || request.split == split_kind::k) return std::nullopt;
  auto made = spread_search(p, machine, devices, request, limits).run();
  if (!made) return made;
  const time_bound bound = bound_seconds(machine, {&p, 1}, devices);
  made->bound_seconds = bound.seconds;
  made->bound_limit = bound.limit;
  return made;
}

}  // namespace sg
