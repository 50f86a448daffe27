// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/spread/join.hpp"

#include <algorithm>

namespace sg {
namespace {

using indices = std::vector<std::uint32_t>;

class joiner {
 public:
  joiner(const problem &whole, const std::vector<device_schedule> &parts, std::uint32_t spread,
         std::span<const double> weights, std::size_t ahead)
      : whole_(whole), spread_(spread), weights_(weights), ahead_(ahead), builder_({&whole, 1}) {
    std::int64_t workers = 0;
    for (const device_schedule &each : parts) {
      devices_.push_back({each, std::vector<indices>(each.s.commands.size()), indices(each.s.commands.size(), none)});
      for (const buffer &b : each.s.buffers) add_buffer(devices_.back(), b);
      workers = std::max<std::int64_t>(workers, each.s.lanes[int(lane_kind::staging)]);
    }
    if (workers > 0) builder_.use_workers(workers);
  }

  std::optional<schedule> run() {
    for (;;) {
      while (device_state *const next = furthest_behind()) add(*next, next->next++);
      const auto at_end = [](const device_state &x) { return x.next == x.of.s.commands.size(); };
      if (std::all_of(devices_.begin(), devices_.end(), at_end)) break;
      if (std::any_of(devices_.begin(), devices_.end(), at_end) || !add_spread()) return std::nullopt;
    }
    const std::string &way = devices_.front().of.s.strategy;
    return builder_.finish(std::to_string(devices_.size()) + " devices" + (spread_ ? ", spread" : "") +
                           (ahead_ > 0 ? ", paced: " : ": ") + way);
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  // A peer copy, and the memory of the device that it reads.
  struct pull {
    view from;
    std::uint32_t command;
  };
  struct device_state {
    const device_schedule &of;
    // By index in the device's own schedule: the commands after which a command's work is done, and the copy after
    // which a staging slot may be filled again.
    std::vector<indices> now;
    indices frees_slot;
    std::vector<std::int32_t> buffers = {};
    std::vector<pull> pulls = {};  // of what the device brought, by others
    indices outs = {};             // copies out
    std::size_t next = 0;
    std::uint32_t last_copy = none, last_pull = none;
    std::uint32_t brought = none;  // its part of the copy that is being spread
    device_index device() const noexcept { return of.part.device; }
  };

  // The device whose next command can be added and that has the largest part of its commands left: no device's commands
  // are behind those of another. nullptr: all are at a copy to be spread, or at their end.
  device_state *furthest_behind() {
    device_state *found = nullptr;
    for (device_state &each : devices_) {
      const std::size_t all = each.of.s.commands.size();
      if (each.next == all || brings_spread(each, each.next)) continue;
      if (!found || each.next * found->of.s.commands.size() < found->next * all) found = &each;
    }
    return found;
  }

  void add_buffer(device_state &d, buffer b) {
    if (b.kind == buffer_kind::parameter) {
      d.buffers.push_back(b.parameter);
      return;
    }
    b.space =
        b.kind == buffer_kind::device ? memory_space::of_device(d.device()) : memory_space::staging_of(d.device());
    d.buffers.push_back(builder_.add_placed_buffer(b));
  }

  // A view of the device's schedule in the joined one.
  void place(const device_state &d, view &v) const {
    const buffer &b = d.of.s.buffers[std::size_t(v.buffer)];
    v.buffer = d.buffers[std::size_t(v.buffer)];
    if (b.kind != buffer_kind::parameter) return;
    const auto name = operand_name(b.parameter);
    const operand &x = operand_of(whole_, name);
    const part_origin origin = origin_of(whole_, d.of.part, name);
    v.offset += (origin.where.row + origin.where.col * x.ld) * size_of(x.type);
    v.item += origin.item;
  }

  command placed(const device_state &d, std::size_t index) const {
    command c = d.of.s.commands[index];
    c.where.device = d.device();
    for (accessed_view &v : c.views)
      if (v.exists()) place(d, v);
    return c;
  }

  indices waits_of(const device_state &d, std::size_t index) const {
    const command &c = d.of.s.commands[index];
    indices waits;
    for (std::uint32_t w = 0; w < c.waits; ++w) {
      const std::uint32_t before = d.of.s.waits[c.first_wait + w];
      // A staging slot is free once it has been copied; peers do not read it.
      const bool frees_slot = c.is<ops::pack>() && d.of.s.commands[before].is<ops::copy_in>();
      if (!frees_slot)
        waits.insert(waits.end(), d.now[before].begin(), d.now[before].end());
      else if (d.frees_slot[before] != none)
        waits.push_back(d.frees_slot[before]);
    }
    return waits;
  }

  std::uint32_t add(device_state &d, std::size_t index) {
    const command &c = d.of.s.commands[index];
    indices waits = waits_of(d, index);
    if (c.is<ops::copy_in>()) pace(d, waits);
    const std::uint32_t made = builder_.add(placed(d, index), waits);
    d.now[index] = {made};
    if (c.is<ops::copy_in>()) note_copy(d, index, made);
    if (c.is<ops::copy_out>()) d.outs.push_back(made);
    return made;
  }

  // Where copies out are the bound, copies in that run ahead would take a part of what the link has for both.
  void pace(const device_state &d, indices &waits) const {
    if (ahead_ == 0 || d.outs.size() < ahead_) return;
    const std::uint32_t out = d.outs[d.outs.size() - ahead_];
    if (std::find(waits.begin(), waits.end(), out) == waits.end()) waits.push_back(out);
  }

  // The device's own schedule waits for its latest copy only, behind which all those before it have completed: copied
  // and pulled ones.
  void note_copy(device_state &d, std::size_t index, std::uint32_t made) {
    d.last_copy = d.frees_slot[index] = made;
    d.now[index] = {made};
    if (d.last_pull != none) d.now[index].push_back(d.last_pull);
  }

  bool reads_spread(const device_state &d, const command &c) const {
    if (!c.is<ops::copy_in>() && !c.is<ops::pack>()) return false;
    const buffer &from = buffer_of(d.of.s.buffers, source_of(c));
    return from.kind == buffer_kind::parameter && (spread_ >> from.parameter & 1);
  }
  // Whether a copy from the host begins there, packed before or not.
  bool brings_spread(const device_state &d, std::size_t index) const { return reads_spread(d, d.of.s.commands[index]); }

  // The copy before which a device packs its next chunk, or which is its next command.
  static std::size_t next_copy(const device_state &d) {
    std::size_t at = d.next;
    while (d.of.s.commands[at].is<ops::pack>()) ++at;
    return at;
  }
  // What it brings, in host memory: workers may pack it in pieces, not every device's in the same ones.
  view next_chunk(const device_state &d) const {
    view chunk = source_of(placed(d, d.next));
    const view &copied = source_of(d.of.s.commands[next_copy(d)]);
    chunk.rows = copied.rows, chunk.cols = copied.cols;
    return chunk;
  }

  // The next copy of a spread operand on each device; false: they do not copy the same.
  bool add_spread() {
    const view whole = next_chunk(devices_.front());
    const bool packs = next_copy(devices_.front()) != devices_.front().next;
    const auto same = [&](const device_state &d) {
      const view x = next_chunk(d);
      return (next_copy(d) != d.next) == packs && x.buffer == whole.buffer && x.item == whole.item &&
             x.offset == whole.offset && x.ld == whole.ld && x.rows == whole.rows && x.cols == whole.cols;
    };
    if (!std::all_of(devices_.begin() + 1, devices_.end(), same)) return false;
    // A packed chunk is one device's; a panel is cut into parts.
    by_cols_ = whole.cols >= std::int64_t(devices_.size());
    std::vector<double> weights(devices_.size(), 0);
    if (packs)
      weights[chunks_++ % devices_.size()] = 1;
    else
      weights.assign(weights_.begin(), weights_.end());
    parts_ = cut_by_weight(by_cols_ ? whole.cols : whole.rows, weights, 1);
    for (std::size_t i = 0; i < devices_.size(); ++i) bring_part(i, packs);
    for (std::size_t i = 0; i < devices_.size(); ++i) pull_parts(i);
    for (device_state &each : devices_) ++each.next;
    return true;
  }

  view part_of(view v, std::size_t index) const {
    const std::int64_t size = size_of(builder_.type_of(v.buffer));
    v.offset += parts_[index].first * (by_cols_ ? v.ld : 1) * size;
    (by_cols_ ? v.cols : v.rows) = parts_[index].size;
    return v;
  }

  void bring_part(std::size_t index, bool packs) {
    device_state &d = devices_[index];
    const bool is_empty = parts_[index].size == 0;
    for (const std::size_t copy = next_copy(d); d.next < copy; ++d.next)
      if (!is_empty) add(d, d.next);
    d.brought = none;
    if (is_empty) return leave_out(d, packs);
    command copy = placed(d, d.next);
    indices waits = waits_of(d, d.next);
    add_readers(d, destination_of(copy), waits);
    pace(d, waits);
    copy.views[ops::copy_in::to] = part_of(destination_of(copy), index);
    if (!packs) copy.views[ops::copy_in::from] = part_of(source_of(copy), index);
    d.brought = builder_.add(copy, waits);
    note_copy(d, d.next, d.brought);
  }

  // A chunk that another device brings. Its slot stays as free as it was.
  void leave_out(device_state &d, bool packs) {
    if (d.last_copy != none) d.now[d.next] = {d.last_copy};
    if (!packs) return;
    const command &pack = d.of.s.commands[d.next - 1];
    for (std::uint32_t w = 0; w < pack.waits; ++w)
      d.frees_slot[d.next] = d.frees_slot[d.of.s.waits[pack.first_wait + w]];
  }

  void pull_parts(std::size_t index) {
    device_state &d = devices_[index];
    const view to = destination_of(placed(d, d.next));
    indices waits = waits_of(d, d.next);
    add_readers(d, to, waits);
    for (std::size_t step = 1; step < devices_.size(); ++step) {
      const std::size_t other = (index + step) % devices_.size();
      if (parts_[other].size == 0) continue;
      device_state &source = devices_[other];
      command c;
      c.what = ops::copy_peer();
      c.where = lane(lane_kind::copy_peer, 0, d.device());
      c.views[ops::copy_peer::to] = part_of(to, other);
      c.views[ops::copy_peer::from] = part_of(destination_of(placed(source, source.next)), other);
      indices after = waits;
      after.push_back(source.brought);
      const std::uint32_t made = builder_.add(c, after);
      d.last_pull = made;
      source.pulls.push_back({c.views[ops::copy_peer::from], made});
    }
    if (d.last_pull != none) d.now[d.next].push_back(d.last_pull);
    // What this copy replaces is no longer read: later copies to the same place are after this one.
    std::erase_if(d.pulls, [&](const pull &each) { return is_within(each.from, to) && !is_of_this_copy(d, each); });
  }

  // Peers that read what the device had in the place of a view.
  void add_readers(const device_state &d, const view &place, indices &waits) const {
    for (const pull &each : d.pulls)
      if (meets(each.from, place) && !is_of_this_copy(d, each)) waits.push_back(each.command);
  }
  // A pull of what the device has just brought.
  static bool is_of_this_copy(const device_state &d, const pull &each) {
    return d.brought != none && each.command > d.brought;
  }

  // A rectangle within another. Conservative: may return false.
  bool is_within(const view &inner, const view &outer) const {
    if (inner.buffer != outer.buffer || inner.item != outer.item || inner.ld != outer.ld) return false;
    const std::int64_t size = size_of(builder_.type_of(inner.buffer)), pitch = inner.ld * size;
    const auto holds = [](std::int64_t a, std::int64_t a_size, std::int64_t b, std::int64_t b_size) {
      return b <= a && a + a_size <= b + b_size;
    };
    return holds(inner.offset % pitch, inner.rows * size, outer.offset % pitch, outer.rows * size) &&
           holds(inner.offset / pitch, inner.cols, outer.offset / pitch, outer.cols);
  }

  // Conservative, except for rectangles of one leading dimension.
  bool meets(const view &x, const view &y) const {
    if (x.buffer != y.buffer || x.item != y.item) return x.buffer == y.buffer;
    const std::int64_t size = size_of(builder_.type_of(x.buffer)), pitch = x.ld * size;
    const auto overlap = [](std::int64_t a, std::int64_t a_size, std::int64_t b, std::int64_t b_size) {
      return a < b + b_size && b < a + a_size;
    };
    if (x.ld == y.ld && x.rows <= x.ld && y.rows <= y.ld)
      return overlap(x.offset % pitch, x.rows * size, y.offset % pitch, y.rows * size) &&
             overlap(x.offset / pitch, x.cols, y.offset / pitch, y.cols);
    const auto bytes = [&](const view &v) { return ((v.cols - 1) * v.ld + v.rows) * size; };
    return overlap(x.offset, bytes(x), y.offset, bytes(y));
  }

  const problem &whole_;
  const std::uint32_t spread_;
  const std::span<const double> weights_;
  const std::size_t ahead_;
  gemm_builder builder_;
  std::vector<device_state> devices_;
  std::vector<range> parts_;  // of the copy that is spread: columns, or rows
  bool by_cols_ = true;
  std::size_t chunks_ = 0;
};

}  // namespace

std::optional<schedule> join(const problem &whole, const std::vector<device_schedule> &parts, std::uint32_t spread,
                             std::span<const double> weights, std::size_t ahead) {
  return joiner(whole, parts, parts.size() > 1 ? spread : 0, weights, ahead).run();
}

}  // namespace sg
