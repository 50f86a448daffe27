// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/lane_set.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/futex.hpp"

namespace sg {

namespace {

// Commands that a device stream may hold: enough that the device never waits for the host, and few enough that the
// driver accepts them without blocking (from some dozens on, CUDA's calls wait for the device).
constexpr std::int32_t device_depth = 12;
// Copies of chunks, of some 40 us each, that keep a copy engine busy until the host observes the first completion.
constexpr std::int32_t copies_ahead = 3;
// A copy over the link takes 20 us or more: an event behind it costs nothing that matters.
constexpr std::int64_t long_copy_bytes = 1 << 20;
static_assert(device_depth < lane_slot::most_marks);
// After this time without a GEMM of high priority, none is expected.
constexpr std::int64_t urgent_for_ns = 100'000'000;
constexpr std::int32_t most_device_lanes = 16;
constexpr std::size_t first_dedicated = most_device_lanes + 5;  // the lanes before it are shared
static_assert(first_dedicated + most_dedicated_lanes <= 8 * sizeof(lane_bits));

std::int32_t in_1024ths(float share) noexcept { return static_cast<std::int32_t>(share * 1024); }

lane_slot *unless_full(lane_slot *slot, std::int32_t depth) noexcept {
  return slot->in_flight.load(std::memory_order_acquire) < depth ? slot : nullptr;
}

}  // namespace

lane_set::lane_set(const device &on, device_index index, const device_model &model, std::int32_t most_in_flight)
    : device_(on),
      index_(index),
      ops_(on.ops()),
      device_ordered_(!on.unified()),
      depth_(most_in_flight > 0 ? most_in_flight : std::max(1, model.lane_depth)),
      most_small_(most_in_flight > 0 ? most_in_flight : model.dispatch.small_in_flight),
      most_large_(most_in_flight > 0 ? most_in_flight : model.dispatch.large_in_flight),
      limits_(model.dispatch),
      between_launches_ns_(static_cast<std::int64_t>(model.dispatch.between_launches_seconds * 1e9)),
      units_(model.units) {
  const std::int32_t wanted = std::max(1, model.compute_lanes);
  try {
    const std::int32_t lanes = device_ordered_ ? std::min(wanted, most_device_lanes) : wanted;
    for (std::int32_t i = 0; i < lanes; ++i) add(compute_, 0);
    if (device_ordered_) {
      urgent_ = add(others_, 1);
      for (lane_slot **slot : {&copy_in_, &copy_out_, &run_copy_in_, &run_copy_out_}) *slot = add(others_, 0);
    }
  } catch (...) {
    destroy();
    throw;
  }
}

lane_set::~lane_set() { destroy(); }

lane_slot *lane_set::add(std::vector<std::unique_ptr<lane_slot>> &to, std::int32_t priority) {
  to.push_back(std::make_unique<lane_slot>());
  lane_slot &slot = *to.back();
  slot.device = index_;
  slot.index = static_cast<std::uint32_t>(compute_.size() + others_.size() - 1);
  slot.stream = device_.stream_create(priority);
  if (device_ordered_) slot.tail = device_.event_create();
  return &slot;
}

void lane_set::destroy() noexcept {
  for (const auto *list : {&compute_, &others_}) {
    for (const auto &slot : *list) {
      if (slot->stream) ops_.stream_destroy(slot->stream);
      if (slot->tail) ops_.event_destroy(slot->tail);
      for (sg_backend_event *mark : slot->marks)
        if (mark) ops_.event_destroy(mark);
    }
  }
}

bool lane_set::cores_are_full() const noexcept {
  return std::all_of(compute_.begin(), compute_.end(), [this](const std::unique_ptr<lane_slot> &slot) {
    return slot->in_flight.load(std::memory_order_acquire) >= depth_;
  });
}

// The least loaded lane; among equals round-robin on cores, and on a device the first, whose thread is likeliest awake.
// At least one lane exists.
lane_slot *lane_set::least_loaded() noexcept {
  const lane_slot *const awake = awake_.load(std::memory_order_relaxed);
  const std::size_t first = device_ordered_ ? 0 : awake ? awake->index : next_lane_;
  lane_slot *best = compute_[first].get();
  std::int32_t load = best->in_flight.load(std::memory_order_acquire);
  for (std::size_t i = 1; i < compute_.size(); ++i) {
    lane_slot &slot = *compute_[(first + i) % compute_.size()];
    const std::int32_t its = slot.in_flight.load(std::memory_order_acquire);
    if (its >= load) continue;
    best = &slot;
    load = its;
  }
  return best;
}

lane_slot *lane_set::find_core(const lane_demand &wanted) noexcept {
  lane_slot *const slot = least_loaded();
  if (slot->in_flight.load(std::memory_order_acquire) >= (wanted.alone ? 1 : depth_)) return nullptr;
  next_lane_ = (next_lane_ + 1) % compute_.size();
  return slot;
}

lane_slot *lane_set::with_room(lane_slot &dedicated) noexcept { return unless_full(&dedicated, device_depth); }

lane_slot *lane_set::find(const lane_demand &wanted) noexcept {
  if (!device_ordered_) return find_core(wanted);
  if (wanted.what != computing) return unless_full(wanted.what == to_device ? copy_in_ : copy_out_, device_depth);
  if (wanted.priority > 0) {
    latest_urgent_ns_ = monotonic_ns();
    return unless_full(urgent_, device_depth);
  }
  if (const lane_bits lanes = computing_among(wanted.behind))
    return unless_full(compute_[static_cast<std::size_t>(std::countr_zero(lanes))].get(), device_depth);
  const std::int32_t now = computing_.load(std::memory_order_acquire);
  if (wanted.small) {
    if (now >= most_small_ + (wanted.urgent ? 1 : 0)) return nullptr;  // an urgent job does not wait for completions
    const float full = static_cast<float>(wanted.waiting) * wanted.share;
    const bool worth_a_launch_now =
        full >= limits_.worth_a_launch && full * wanted.work_seconds >= limits_.worth_a_launch_seconds;
    if (now > 0 && !wanted.urgent && !worth_a_launch_now && monotonic_ns() - latest_launch_ns_ < between_launches_ns_)
      return nullptr;
  } else if (now >= most_large_ && share_.load(std::memory_order_acquire) + in_1024ths(wanted.share) > 1024) {
    return nullptr;
  }
  const bool beside_others = wanted.share < 1 || wanted.seconds < limits_.beside_each_other_seconds;
  return unless_full(beside_others ? least_loaded() : compute_[0].get(), device_depth);
}

std::uint32_t lane_set::lane_behind(lane_bits behind) noexcept {
  const lane_bits lanes = computing_among(behind);
  return lanes ? static_cast<std::uint32_t>(std::countr_zero(lanes)) : least_loaded()->index;
}

lane_slot *lane_set::find(lane where, int priority, bool alone, std::uint32_t first) noexcept {
  if (!device_ordered_) return find(lane_demand{.alone = alone});
  lane_slot *slot = where.kind == lane_kind::copy_in    ? run_copy_in_
                    : where.kind == lane_kind::copy_out ? run_copy_out_
                    : priority > 0                      ? urgent_
                                                        : compute_[(where.index + first) % compute_.size()].get();
  // A run always has more commands: leave room for other work.
  return slot->of_runs.load(std::memory_order_acquire) < device_depth - 1 ? unless_full(slot, device_depth) : nullptr;
}

bool lane_set::copies_in_run_dry() const noexcept {
  return run_copy_in_->in_flight.load(std::memory_order_acquire) < copies_ahead;
}

const lane_slot *lane_set::at(std::size_t index) const noexcept {
  if (index >= first_dedicated)
    return dedicated_[index - first_dedicated];  // nullptr: dismissed, and its commands have completed
  return index < compute_.size() ? compute_[index].get() : others_[index - compute_.size()].get();
}

copy_marks lane_set::mark_copy(lane_slot &slot, double bytes) noexcept {
  if (&slot != copy_in_ && &slot != copy_out_) return {};
  std::uint64_t mark = copy_marks::all_present;
  if (device_ordered_ && !ops_.stream_begin_at && bytes >= long_copy_bytes) {
    sg_backend_event *&event = slot.marks[(slot.marked + 1) % lane_slot::most_marks];
    const bool made = event || ops_.event_create(device_.handle(), &event) == SG_STATUS_OK;
    if (made && ops_.event_record(event, slot.stream) == SG_STATUS_OK) mark = ++slot.marked;
  }
  return &slot == copy_in_ ? copy_marks{mark, 0} : copy_marks{0, mark};
}

void lane_set::follow(const lane_slot &slot, lane_bits behind, copy_marks marks) const {
  for (lane_bits left = behind; left; left &= left - 1) {
    const lane_slot *other = at(static_cast<std::size_t>(std::countr_zero(left)));
    if (!other || other == &slot || other->in_flight.load(std::memory_order_acquire) == 0) continue;
    const std::uint64_t mark = other == copy_in_ ? marks.in : other == copy_out_ ? marks.out : copy_marks::all_present;
    const bool has_mark = mark != 0 && mark != copy_marks::all_present;
    sg_backend_event *until = has_mark ? other->marks[mark % lane_slot::most_marks] : nullptr;
    if (!until) {
      until = other->tail;
      device_.check(ops_.event_record(until, other->stream), "recording an event");
    }
    device_.check(ops_.stream_wait(slot.stream, until), "waiting for an event");
  }
}

bool lane_set::admit(lane_slot &dedicated) noexcept {
  const dedicated_range room = room_for(dedicated.use);
  const auto first = dedicated_.begin() + static_cast<std::ptrdiff_t>(room.first);
  const auto end = first + static_cast<std::ptrdiff_t>(room.count);
  const auto place = std::find(first, end, nullptr);
  if (place == end) return false;
  *place = &dedicated;
  dedicated.device = index_;
  dedicated.index = static_cast<std::uint32_t>(first_dedicated + static_cast<std::size_t>(place - dedicated_.begin()));
  return true;
}

std::size_t lane_set::in_whole_waves(std::size_t count, float share) const noexcept {
  const float waves = std::floor(static_cast<float>(count) * share);
  return waves < 1 ? count : static_cast<std::size_t>(std::lround(waves / share));
}

void lane_set::dismiss(const lane_slot &dedicated) noexcept {
  *std::find(dedicated_.begin(), dedicated_.end(), &dedicated) = nullptr;
}

void lane_set::entered_of_run(lane_slot &slot) noexcept {
  slot.of_runs.fetch_add(1, std::memory_order_relaxed);
  slot.in_flight.fetch_add(1, std::memory_order_relaxed);
}

void lane_set::left_of_run(lane_slot &slot) noexcept {
  slot.of_runs.fetch_sub(1, std::memory_order_acq_rel);
  slot.in_flight.fetch_sub(1, std::memory_order_acq_rel);
}

void lane_set::entered(lane_slot &slot, float share) noexcept {
  slot.in_flight.fetch_add(1, std::memory_order_relaxed);
  if (is_computing(slot)) computing_.fetch_add(1, std::memory_order_relaxed);
  share_.fetch_add(in_1024ths(share), std::memory_order_relaxed);
}

void lane_set::launched(bool small) noexcept {
  if (device_ordered_ && small) latest_launch_ns_ = monotonic_ns();
}

std::int64_t lane_set::expect(lane_slot &slot, std::int64_t predicted_ns) noexcept {
  if (!ops_.poll) return 0;
  const std::int64_t now_ns = monotonic_ns();
  if (slot.in_flight.load(std::memory_order_relaxed) == 1) slot.begun_ns.store(now_ns, std::memory_order_relaxed);
  const std::int64_t all_ns = slot.predicted_ns.fetch_add(predicted_ns, std::memory_order_relaxed) + predicted_ns;
  return std::max(slot.begun_ns.load(std::memory_order_relaxed) + all_ns, now_ns + predicted_ns);
}

void lane_set::left(lane_slot &slot, float share, std::int64_t predicted_ns) noexcept {
  share_.fetch_sub(in_1024ths(share), std::memory_order_relaxed);
  if (ops_.poll && predicted_ns > 0) {
    slot.predicted_ns.fetch_sub(predicted_ns, std::memory_order_relaxed);
    slot.begun_ns.store(monotonic_ns(), std::memory_order_relaxed);  // the next command's
  }
  slot.in_flight.fetch_sub(1, std::memory_order_acq_rel);
  if (is_computing(slot)) computing_.fetch_sub(1);  // sequentially consistent with the engine's store of saturated_
}

std::int32_t lane_set::units_for(int priority, float share, std::int32_t limit) noexcept {
  // Recent host times mean nothing on a device with virtual time.
  const bool may_spare = device_ordered_ && !ops_.stream_begin_at && limits_.spared_units > 0;
  if (!may_spare || priority > 0 || share < 1 || latest_urgent_ns_ == 0) return limit;
  if (monotonic_ns() - latest_urgent_ns_ >= urgent_for_ns) return limit;
  const std::int32_t left = std::max(1, units_ - limits_.spared_units);
  return limit > 0 ? std::min(limit, left) : left;
}

}  // namespace sg
