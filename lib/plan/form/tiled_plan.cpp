// SPDX-License-Identifier: Apache-2.0
#include "plan/form/tiled_plan.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/form/tile_slots.hpp"
#include "plan/form/tiled_steps.hpp"
#include "plan/schedule/simulate.hpp"
#include "plan/schedule/transfer.hpp"

namespace sg {

namespace {

using parameter_flags = std::array<bool, tiling::most_operands>;

constexpr const char *a_tile = "a tile";

std::int64_t most_size(const std::vector<range> &all) {
  std::int64_t most = 0;
  for (const range &each : all) most = std::max(most, each.size);
  return most;
}

// Emits the commands of a plan of slots. All kernels are on one lane, in the order of the steps.
class tiled_schedule {
 public:
  tiled_schedule(const command_form &f, const tiling &t, const parameter_flags &is_moved, std::int64_t slot_bytes)
      : f_(f), t_(t), is_moved_(is_moved), slot_bytes_(slot_bytes) {}

  schedule run(const slot_plan &plan, const device_model &model, const std::string &name) {
    for (std::size_t i = 0; i < f_.parameters.size(); ++i) {
      const command_form::parameter &x = f_.parameters[i];
      buffer missing{buffer_kind::parameter,      x.stored.type, false, SG_MEMORY_DEVICE, 0, 0, 0,
                     static_cast<std::int32_t>(i)};
      if (x.given)
        builder_.add_parameter({x.stored, "", writes(f_.mode_of(i))});
      else
        builder_.add_placed_buffer(missing);
    }
    for (std::int64_t i = 0; i < plan.slots; ++i)
      slots_.push_back({builder_.add_device_buffer(type(), slot_bytes_), {}, {}});
    transfers through(builder_, model, bytes_staged(plan));
    through_ = &through;
    for (const slot_event &e : plan.events) {
      switch (e.what) {
        case slot_event::kind::load: load(e); break;
        case slot_event::kind::take: take(e); break;
        case slot_event::kind::compute: compute(t_.steps[e.step]); break;
        case slot_event::kind::store: store(e); break;
      }
    }
    return builder_.finish(name);
  }

 private:
  struct slot {
    std::int32_t buffer = -1;
    std::vector<std::uint32_t> users;  // commands that complete before it is filled again
    std::vector<std::uint32_t> ready;  // commands that the first one to access the tile waits for
  };

  sg_dtype type() const noexcept { return f_.result().type; }
  const command_form::parameter &parameter_of(const tile_index &t) const {
    return f_.parameters[static_cast<std::size_t>(t.parameter)];
  }
  bool is_moved(const tile_index &t) const { return is_moved_[static_cast<std::size_t>(t.parameter)]; }
  std::int32_t &place_of(const tile_index &t) {
    const tiling::grid &grid = t_.grids[static_cast<std::size_t>(t.parameter)];
    auto &all = places_[static_cast<std::size_t>(t.parameter)];
    all.resize(grid.rows.size() * grid.cols.size(), -1);
    return all[static_cast<std::size_t>(t.row) + static_cast<std::size_t>(t.col) * grid.rows.size()];
  }
  block block_of(const tile_index &t) const {
    const tiling::grid &grid = t_.grids[static_cast<std::size_t>(t.parameter)];
    const range &rows = grid.rows[static_cast<std::size_t>(t.row)], &cols = grid.cols[static_cast<std::size_t>(t.col)];
    return {rows.first, cols.first, rows.size, cols.size};
  }
  // As stored.
  panel panel_of(const tile_index &t) const {
    block where = block_of(t);
    const command_form::parameter &x = parameter_of(t);
    if (x.transposed) std::swap(where.row, where.col), std::swap(where.rows, where.cols);
    return {{0, 1}, where, t.row == t.col ? x.accessed : stored_part::all};
  }
  static view view_of(std::int32_t buffer, const block &where) {
    return {buffer, 0, 1, 0, where.rows, where.rows, where.cols};
  }

  pageable_bytes bytes_staged(const slot_plan &plan) const {
    pageable_bytes all;
    for (const slot_event &e : plan.events) {
      if (e.what != slot_event::kind::load && e.what != slot_event::kind::store) continue;
      const operand &stored = parameter_of(e.tile).stored;
      if (stored.space == SG_MEMORY_DEVICE) continue;
      (e.what == slot_event::kind::load ? all.in : all.out) += staged_bytes(stored, panel_of(e.tile));
    }
    return all;
  }

  void take(const slot_event &e) {
    place_of(e.tile) = e.slot;
    slot &to = slots_[static_cast<std::size_t>(e.slot)];
    to.ready = std::exchange(to.users, {});
  }

  void load(const slot_event &e) {
    place_of(e.tile) = e.slot;
    slot &to = slots_[static_cast<std::size_t>(e.slot)];
    const command_form::parameter &x = parameter_of(e.tile);
    const panel stored = panel_of(e.tile);
    const block &where = stored.where;
    if (!x.transposed) {
      to.ready = {through_->in(e.tile.parameter, stored, {to.buffer, 0, 0, where.rows, 0}, to.users)};
      to.users.clear();
      return;
    }
    command transposes;
    transposes.what = ops::convert{SG_TRANSPOSE_T};
    transposes.views[ops::convert::c] = view_of(to.buffer, block_of(e.tile));
    std::vector<std::uint32_t> waits = to.users;
    if (x.stored.space == SG_MEMORY_DEVICE) {
      transposes.views[ops::convert::a] = builder_.part_of(e.tile.parameter, {0, 1}, where);
      to.users = {builder_.add(transposes, waits)};
      return;
    }
    while (raw_.size() < raw_slots) raw_.push_back({builder_.add_device_buffer(type(), slot_bytes_), {}, {}});
    slot &from = raw_[raw_turn_++ % raw_slots];
    waits.push_back(through_->in(e.tile.parameter, stored, {from.buffer, 0, 0, where.rows, 0}, from.users));
    transposes.views[ops::convert::a] = view_of(from.buffer, where);
    to.users = from.users = {builder_.add(transposes, waits)};
  }

  void compute(const tiling::step &s) {
    command c;
    c.what = s.what;
    std::vector<std::uint32_t> waits;
    std::vector<slot *> used;
    for (std::size_t v = 0; v < s.tiles.size(); ++v) {
      const tile_index &t = s.tiles[v];
      if (t.parameter < 0) continue;
      if (!is_moved(t)) {
        c.views[v] = builder_.part_of(t.parameter, {0, 1}, block_of(t));
        continue;
      }
      slot &x = slots_[static_cast<std::size_t>(place_of(t))];
      c.views[v] = view_of(x.buffer, block_of(t));
      waits.insert(waits.end(), x.ready.begin(), x.ready.end());
      x.ready.clear();
      used.push_back(&x);
    }
    const std::uint32_t index = builder_.add(c, waits);
    for (slot *x : used) builder_.merge(x->users, index);
  }

  void store(const slot_event &e) {
    slot &from = slots_[static_cast<std::size_t>(e.slot)];
    const panel stored = panel_of(e.tile);
    const std::uint32_t out =
        through_->out(e.tile.parameter, stored, {from.buffer, 0, 0, stored.where.rows, 0}, from.users);
    from.users.push_back(out);
  }

  static constexpr std::size_t raw_slots = 2;

  const command_form &f_;
  const tiling &t_;
  const parameter_flags is_moved_;
  const std::int64_t slot_bytes_;
  schedule_builder builder_;
  transfers *through_ = nullptr;
  std::vector<slot> slots_, raw_;
  std::size_t raw_turn_ = 0;
  std::array<std::vector<std::int32_t>, tiling::most_operands> places_;  // by parameter and tile: its slot
};

// Bytes that cross the link once.
struct crossing_bytes {
  double in = 0, out = 0;
};
crossing_bytes bytes_crossing(const command_form &f) {
  crossing_bytes all;
  for (std::size_t i = 0; i < f.parameters.size(); ++i) {
    const command_form::parameter &x = f.parameters[i];
    if (!x.given || x.stored.space == SG_MEMORY_DEVICE) continue;
    const double bytes = bytes_of(x.stored) / (x.accessed == stored_part::all ? 1 : 2);
    if (reads(f.mode_of(i))) all.in += bytes;
    if (writes(f.mode_of(i))) all.out += bytes;
  }
  return all;
}

// The slots of a step's tiles; a solve's later steps read all tiles of a panel of the result.
std::int64_t least_slots(const tiling &t, const command_form &f, const parameter_flags &is_moved) {
  std::int64_t most = 0;
  for (const tiling::step &s : t.steps)
    most = std::max<std::int64_t>(most, std::ranges::count_if(s.tiles, [&](const tile_index &each) {
                                    return each.parameter >= 0 && is_moved[static_cast<std::size_t>(each.parameter)];
                                  }));
  const auto *what = std::get_if<ops::triangular>(&f.what);
  if (!what || what->kind != SG_TRIANGULAR_SOLVE || !is_moved[ops::triangular::b]) return most;
  return std::int64_t(t.grids[ops::triangular::a].rows.size()) + int{is_moved[ops::triangular::a]};
}

}  // namespace

std::optional<schedule> build_tiled(const command_form &f, std::int64_t edge, std::int64_t group,
                                    const plan_terms &terms, std::int64_t *needed) {
  const tiling t = tiles_of(f, edge, group);
  parameter_flags is_moved{};
  bool needs_raw = false;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < is_moved.size(); ++i) {
    const command_form::parameter &x = f.parameters[i];
    is_moved[i] = x.given && (x.stored.space != SG_MEMORY_DEVICE || x.transposed);
    needs_raw = needs_raw || (is_moved[i] && x.transposed);
    if (is_moved[i]) most = std::max(most, checked_mul(most_size(t.grids[i].rows), most_size(t.grids[i].cols), a_tile));
  }
  const std::int64_t slot_bytes = round_up(checked_mul(most, size_of(f.result().type), a_tile), 256);
  const std::int64_t raw = needs_raw ? 2 : 0, slots = terms.memory_limit / slot_bytes - raw;
  if (needed) *needed = (raw + least_slots(t, f, is_moved)) * slot_bytes;
  const auto plan = assign_slots(t, is_moved, slots);
  if (!plan) return std::nullopt;
  const std::string name = std::string(f.strategy) + " in tiles of " + std::to_string(edge);
  schedule made = tiled_schedule(f, t, is_moved, slot_bytes).run(*plan, terms.model, name);
  made.predicted_seconds = simulate(made, terms.model).seconds;
  return made;
}

schedule plan_in_tiles(const command_form &f, const plan_terms &terms, const std::function<schedule()> &whole) {
  // Smaller operands are copied sooner than tiles of them are worth their commands.
  constexpr double least_bytes = 4 << 20;
  constexpr double most_steps = 1000;  // of schedules that are better, but not needed
  const crossing_bytes moved = bytes_crossing(f);
  std::optional<schedule> best;
  try {
    best = whole();
    if (moved.in + moved.out < least_bytes) return std::move(*best);
    best->predicted_seconds = simulate(*best, terms.model).seconds;
  } catch (const error &e) {
    if (e.status() != SG_STATUS_OUT_OF_MEMORY) throw;
  }
  std::int64_t edge = 1, needed = 0;
  for (const command_form::parameter &x : f.parameters)
    if (x.given) edge = std::max({edge, x.stored.rows, x.stored.cols});
  bool is_tiled = false, is_faster = true;
  do {
    edge = round_up(ceil_div(edge, 2), grain);
    if (steps_of(f, edge) > (best ? most_steps : double(most_commands))) break;
    const double slot = double(edge) * double(edge) * double(size_of(f.result().type));
    const std::int64_t group = group_within(f, edge, std::int64_t(double(terms.memory_limit) / slot));
    is_faster = false;
    for (std::int64_t tried = group; tried > 0; tried = tried > 1 && tried > group / 4 ? tried / 2 : 0) {
      auto made = build_tiled(f, edge, tried, terms, &needed);
      if (!made || (best && made->predicted_seconds >= best->predicted_seconds)) continue;
      best = std::move(made);
      is_tiled = is_faster = true;
    }
  } while (edge > grain && (!is_tiled || is_faster));
  if (!best)
    throw error(SG_STATUS_OUT_OF_MEMORY, "a step of the %s needs %lld bytes of device memory; the limit is %lld",
                f.strategy, static_cast<long long>(needed), static_cast<long long>(terms.memory_limit));
  best->flops = double(f.result().rows) * double(f.result().cols) * f.flops_per_element;
  best->bound_seconds = accessed_bytes(f) / terms.model.memory_rate;
  if (moved.in > 0) best->bound_seconds = std::max(best->bound_seconds, moved.in / terms.model.link_in);
  if (moved.out > 0) best->bound_seconds = std::max(best->bound_seconds, moved.out / terms.model.link_out);
  return std::move(*best);
}

}  // namespace sg
