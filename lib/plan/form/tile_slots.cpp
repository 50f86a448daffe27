// SPDX-License-Identifier: Apache-2.0
#include "plan/form/tile_slots.hpp"

#include <algorithm>

#include "ops/operation.hpp"

namespace sg {

namespace {

constexpr std::uint32_t no_step = UINT32_MAX;

class slot_assignment {
 public:
  slot_assignment(const tiling &t, const std::array<bool, tiling::most_operands> &is_moved, std::int64_t slots)
      : t_(t), is_moved_(is_moved), most_(static_cast<std::size_t>(std::max<std::int64_t>(0, slots))) {
    std::size_t tiles = 0;
    for (std::size_t i = 0; i < first_.size(); ++i) {
      first_[i] = tiles;
      tiles += t.grids[i].rows.size() * t.grids[i].cols.size();
    }
    tiles_.resize(tiles);
    for (std::uint32_t i = 0; i < t.steps.size(); ++i)
      each_use(i, [&](std::size_t id, const tile_index &, access_mode mode) {
        tiles_[id].uses.push_back(i);
        if (writes(mode)) tiles_[id].last_write = i;
      });
  }

  std::optional<slot_plan> run() {
    for (now_ = 0; now_ < t_.steps.size(); ++now_) {
      each_use(now_, [&](std::size_t id, const tile_index &, access_mode) { tiles_[id].last_use = now_ + 1; });
      bool fits = true;
      each_use(now_, [&](std::size_t id, const tile_index &which, access_mode mode) {
        if (tiles_[id].slot >= 0) return;
        if (!(fits = fits && make_room(id))) return;
        made_.events.push_back(
            {reads(mode) ? slot_event::kind::load : slot_event::kind::take, tiles_[id].slot, 0, which});
      });
      if (!fits) return std::nullopt;
      made_.events.push_back({slot_event::kind::compute, -1, now_, {}});
      each_use(now_, [&](std::size_t id, const tile_index &which, access_mode mode) {
        tile &x = tiles_[id];
        while (x.next < x.uses.size() && x.uses[x.next] <= now_) ++x.next;
        x.is_written = x.is_written || writes(mode);
        if (x.last_write == now_ && writes(mode)) made_.events.push_back({slot_event::kind::store, x.slot, 0, which});
      });
    }
    made_.slots = static_cast<std::int64_t>(held_.size());
    return std::move(made_);
  }

 private:
  struct tile {
    std::vector<std::uint32_t> uses;  // steps
    std::size_t next = 0;             // of uses
    std::uint32_t last_write = no_step, last_use = 0;
    std::int32_t slot = -1;
    bool is_written = false;
  };

  template <class Each>
  void each_use(std::uint32_t index, const Each &each) const {
    command c;
    c.what = t_.steps[index].what;
    for (std::size_t v = 0; v < tiling::most_operands; ++v) {
      const tile_index &which = t_.steps[index].tiles[v];
      if (which.parameter < 0 || !is_moved_[static_cast<std::size_t>(which.parameter)]) continue;
      const auto parameter = static_cast<std::size_t>(which.parameter);
      const std::size_t id = first_[parameter] + static_cast<std::size_t>(which.row) +
                             static_cast<std::size_t>(which.col) * t_.grids[parameter].rows.size();
      each(id, which, operation_of(c).access(c, v));
    }
  }

  std::uint32_t next_use(const tile &x) const { return x.next < x.uses.size() ? x.uses[x.next] : no_step; }

  // In a new slot, or in that of a tile that is not needed soon. Tiles of the latest steps stay while others can go: a
  // copy into their slots would wait for these steps. Where all are of the latest steps, the oldest goes.
  bool make_room(std::size_t id) {
    if (held_.size() < most_) {
      tiles_[id].slot = static_cast<std::int32_t>(held_.size());
      held_.push_back(id);
      return true;
    }
    const auto recent = static_cast<std::uint32_t>(2 * t_.sweep);
    const tile *best = nullptr;
    const auto is_better = [&](const tile &x) {
      const bool is_recent = x.last_use + recent > now_, best_is_recent = best->last_use + recent > now_;
      if (is_recent != best_is_recent) return best_is_recent;
      if (is_recent || next_use(x) == next_use(*best)) return x.last_use < best->last_use;
      return next_use(x) > next_use(*best);
    };
    for (const std::size_t other : held_) {
      const tile &x = tiles_[other];
      const bool is_needed = x.last_use > now_ || (x.is_written && next_use(x) != no_step);
      if (!is_needed && (!best || is_better(x))) best = &x;
    }
    if (!best) return false;
    const std::int32_t slot = best->slot;
    tiles_[held_[static_cast<std::size_t>(slot)]].slot = -1;
    tiles_[id].slot = slot;
    held_[static_cast<std::size_t>(slot)] = id;
    return true;
  }

  const tiling &t_;
  const std::array<bool, tiling::most_operands> is_moved_;
  const std::size_t most_;
  std::array<std::size_t, tiling::most_operands> first_{};  // tile of each parameter
  std::vector<tile> tiles_;
  std::vector<std::size_t> held_;  // by slot
  std::uint32_t now_ = 0;
  slot_plan made_;
};

}  // namespace

std::optional<slot_plan> assign_slots(const tiling &t, const std::array<bool, tiling::most_operands> &is_moved,
                                      std::int64_t slots) {
  return slot_assignment(t, is_moved, slots).run();
}

}  // namespace sg
