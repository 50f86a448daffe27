// SPDX-License-Identifier: Apache-2.0
// The backend streams of an engine, and which of them may take a command now.
//
// A device runs few commands at a time and is handed few: what waits here can still be overtaken, cancelled and
// gathered into groups, what waits in the device cannot. Used by the engine's one thread at a time, but for what is
// atomic.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "backend/device.hpp"
#include "plan/model/device_model.hpp"
#include "plan/schedule/schedule.hpp"
#include "run/program/inflight_command.hpp"

namespace sg {

// What occupies which engine of a device; a schedule's run begins on none, and gives each what it has for it.
enum work_class : std::uint8_t { to_device, from_device, computing, of_runs, work_classes };

// Of lanes that are used by name, those that a context has room for, and the places that they have.
struct dedicated_range {
  std::size_t first, count;
};
constexpr dedicated_range room_for(lane_use use) noexcept {
  switch (use) {
    case lane_use::native: return {0, 32};
    case lane_use::events: return {32, 3};
    case lane_use::partition: return {35, 8};
    case lane_use::any: break;
  }
  return {0, 0};
}
inline constexpr std::size_t most_dedicated_lanes = 43;

// A free-standing command that wants a lane.
struct lane_demand {
  work_class what = computing;
  int priority = 0;
  bool alone = false;                                             // long enough to have a core to itself
  bool small = false;                                             // may go out in a group
  bool urgent = false;                                            // somebody waits for it
  std::size_t waiting = 1;                                        // how many, with this one, wait for such a lane
  float share = 1;                                                // of the device, that it fills
  double seconds = std::numeric_limits<double>::infinity();       // predicted, of a product
  double work_seconds = std::numeric_limits<double>::infinity();  // the same without its launch
  lane_bits behind = 0;                                           // lanes whose commands of now it comes after
};

class lane_set {
 public:
  lane_set(const device &on, device_index index, const device_model &model,
           std::int32_t most_in_flight);  // Throws sg::error.
  ~lane_set();                            // nothing is in flight
  lane_set(const lane_set &) = delete;
  lane_set &operator=(const lane_set &) = delete;

  bool device_ordered() const noexcept { return device_ordered_; }  // streams and events order; else the engine does
  // Whether something is in flight whose end will be told, and before which no small product of normal priority is
  // worth another look.
  bool busy_with_small() const noexcept { return device_ordered_ ? computing_.load() > 0 : cores_are_full(); }
  // So much work is worth a look at the inbox, and on cores a group twice its dispatch.
  static constexpr std::int64_t worth_a_look_ns = 25'000;
  // Of so many products of that share of the device, those that fill it a whole number of times: one more would take as
  // long as another round of all. All where they do not fill it once.
  std::size_t in_whole_waves(std::size_t count, float share) const noexcept;
  std::int32_t compute_lanes() const noexcept { return static_cast<std::int32_t>(compute_.size()); }

  lane_slot *find(const lane_demand &wanted) noexcept;  // nullptr: it has to wait
  // Whether a product of that priority that waits does so for room that those of lower priority would take.
  bool holds_up_lower(int priority) const noexcept { return !device_ordered_ || priority <= 0; }
  // The lane for a command of a schedule's run; nullptr: it has to wait.
  lane_slot *find(lane where, int priority, bool alone) noexcept;

  // A lane that is used by name, unless it is full: then nullptr.
  static lane_slot *with_room(lane_slot &dedicated) noexcept;

  // Whether a device's lane of copies in would soon have nothing to do.
  bool copies_in_run_dry() const noexcept;

  // Lets what is enqueued in `slot` next start after what is in the lanes `behind` now. Throws sg::error.
  void follow(const lane_slot &slot, lane_bits behind) const;

  // A lane that is used by name, which find() never gives. False: there is no room.
  bool admit(lane_slot &dedicated) noexcept;
  void dismiss(const lane_slot &dedicated) noexcept;

  // A free-standing command, or one of a schedule's run, which many follow: small products go beside those.
  void entered(lane_slot &slot, float share) noexcept;
  static void entered_of_run(lane_slot &slot) noexcept;
  void launched(bool small) noexcept;  // just now
  // When the command that has entered last should end, on CLOCK_MONOTONIC; 0 where nobody would ask.
  std::int64_t expect(lane_slot &slot, std::int64_t predicted_ns) noexcept;
  void left(lane_slot &slot, float share, std::int64_t predicted_ns) noexcept;  // any thread
  static void left_of_run(lane_slot &slot) noexcept;                            // any thread
  // The thread of a core's lane, which has just ended a command, looks for the next one until it falls asleep. Any
  // thread.
  void awake(lane_slot *slot) noexcept {
    if (!device_ordered_) awake_.store(slot, std::memory_order_relaxed);
  }

  // Multiprocessors that a product may use; 0: all. `limit`: its stream's. Of long ones of low or normal priority some
  // stay free while products of high priority come, which would otherwise wait for one to be released.
  std::int32_t units_for(int priority, float share, std::int32_t limit) noexcept;

 private:
  void destroy() noexcept;
  lane_slot *add(std::vector<std::unique_ptr<lane_slot>> &to, std::int32_t priority);
  const lane_slot *at(std::size_t index) const noexcept;
  bool is_computing(const lane_slot &slot) const noexcept { return device_ordered_ && slot.index < compute_.size(); }
  lane_slot *least_loaded() noexcept;
  bool cores_are_full() const noexcept;
  lane_slot *find_core(const lane_demand &wanted) noexcept;

  const device &device_;
  const device_index index_;
  const sg_backend_ops &ops_;
  const bool device_ordered_;
  const std::int32_t depth_;  // of a core's lane
  const std::int32_t most_small_, most_large_;
  const dispatch_limits limits_;
  const std::int64_t between_launches_ns_;
  const std::int32_t units_;
  std::vector<std::unique_ptr<lane_slot>> compute_, others_;
  std::array<lane_slot *, most_dedicated_lanes> dedicated_{};
  // In others_. A copy by itself would come, in a lane of runs' copies, behind some that wait for products.
  lane_slot *urgent_ = nullptr, *copy_in_ = nullptr, *copy_out_ = nullptr;
  lane_slot *run_copy_in_ = nullptr, *run_copy_out_ = nullptr;
  std::size_t next_lane_ = 0;
  std::int64_t latest_urgent_ns_ = 0, latest_launch_ns_ = 0;
  std::atomic<std::int32_t> share_{0};      // in 1/1024 of the device
  std::atomic<std::int32_t> computing_{0};  // a device's, free-standing, in compute_
  std::atomic<lane_slot *> awake_{nullptr};
};

}  // namespace sg
