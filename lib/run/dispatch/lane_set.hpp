// SPDX-License-Identifier: Apache-2.0
// The backend streams of an engine, and which of them can accept a command now.
//
// Few commands are enqueued at a time: queued jobs can still be overtaken, cancelled and batched, enqueued commands
// cannot. Used by one thread at a time, except for atomic members.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "devices/device.hpp"
#include "model/device_model.hpp"
#include "plan/schedule/schedule.hpp"
#include "run/program/inflight_command.hpp"

namespace sg {

// The device engine that a command occupies; a schedule's run begins on none, and its commands use each.
enum work_class : std::uint8_t { to_device, from_device, computing, of_runs, work_classes };

// The dedicated lanes of one use: their first index and their number.
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

// A stand-alone command that needs a lane.
struct lane_demand {
  work_class what = computing;
  int priority = 0;
  bool alone = false;                                             // long enough to need a core of its own
  bool small = false;                                             // can be batched
  bool urgent = false;                                            // a thread waits for it
  std::size_t waiting = 1;                                        // queued commands for such a lane, this one included
  float share = 1;                                                // share of the device that it fills
  double seconds = std::numeric_limits<double>::infinity();       // predicted, of a GEMM
  double work_seconds = std::numeric_limits<double>::infinity();  // likewise without its launch
  lane_bits behind = 0;                                           // lanes whose present commands it follows
};

class lane_set {
 public:
  lane_set(const device &on, device_index index, const device_model &model,
           std::int32_t most_in_flight);  // Throws sg::error.
  ~lane_set();                            // nothing is in flight
  lane_set(const lane_set &) = delete;
  lane_set &operator=(const lane_set &) = delete;

  // True: streams and events order commands; false: the engine does.
  bool device_ordered() const noexcept { return device_ordered_; }
  // Whether a command is in flight whose completion will be reported, and until then no small GEMM of normal priority
  // needs a step.
  bool busy_with_small() const noexcept { return device_ordered_ ? computing_.load() > 0 : cores_are_full(); }
  // This much queued work is worth a step; on cores it is twice the cost of dispatching a batch.
  static constexpr std::int64_t worth_a_step_ns = 25'000;
  // The largest number of GEMMs up to `count`, each with that share of the device, that fills whole waves of it; one
  // more would add a wave. `count` if they do not fill one wave.
  std::size_t in_whole_waves(std::size_t count, float share) const noexcept;
  std::int32_t compute_lanes() const noexcept { return static_cast<std::int32_t>(compute_.size()); }

  lane_slot *find(const lane_demand &wanted) noexcept;  // nullptr: it must wait
  // Whether a queued GEMM of that priority waits for room that lower priorities would use.
  bool holds_up_lower(int priority) const noexcept { return !device_ordered_ || priority <= 0; }
  // The lane for a command of a schedule's run; nullptr: it must wait. `first`: the lane of its first one.
  lane_slot *find(lane where, int priority, bool alone, std::uint32_t first = 0) noexcept;
  // The lane in which a run follows jobs in the lanes `behind`, or else the least loaded one.
  std::uint32_t lane_behind(lane_bits behind) noexcept;

  // The dedicated lane; nullptr if it is full.
  static lane_slot *with_room(lane_slot &dedicated) noexcept;

  // Whether a device's lane of copies in would soon be idle.
  bool copies_in_run_dry() const noexcept;

  // Makes the next command enqueued in `slot` follow the present commands of the lanes `behind`; of the lanes of
  // stand-alone copies those up to the marks. Throws sg::error.
  void follow(const lane_slot &slot, lane_bits behind, copy_marks marks) const;
  // Marks the copy that was enqueued just now, of that size: what follows it need not wait for later ones.
  copy_marks mark_copy(lane_slot &slot, double bytes) noexcept;

  // Adds a dedicated lane, which find() never returns. False: no lane is left.
  bool admit(lane_slot &dedicated) noexcept;
  void dismiss(const lane_slot &dedicated) noexcept;

  // A command was enqueued: a stand-alone one, or one of a run, which small GEMMs avoid because many follow.
  void entered(lane_slot &slot, float share) noexcept;
  static void entered_of_run(lane_slot &slot) noexcept;
  void launched(bool small) noexcept;  // just now
  // Expected end of the command enqueued last, on CLOCK_MONOTONIC; 0: no caller would query it.
  std::int64_t expect(lane_slot &slot, std::int64_t predicted_ns) noexcept;
  void left(lane_slot &slot, float share, std::int64_t predicted_ns) noexcept;  // any thread
  static void left_of_run(lane_slot &slot) noexcept;                            // any thread
  // The thread of a core's lane, which has just completed a command, looks for the next one until it sleeps. Any
  // thread.
  void awake(lane_slot *slot) noexcept {
    if (!device_ordered_) awake_.store(slot, std::memory_order_relaxed);
  }

  // Limit of multiprocessors of a GEMM; 0: all. `limit`: its stream's. While GEMMs of high priority are submitted, long
  // ones of lower priority leave some free, so that those need not wait for one.
  std::int32_t units_for(int priority, float share, std::int32_t limit) noexcept;

 private:
  void destroy() noexcept;
  lane_slot *add(std::vector<std::unique_ptr<lane_slot>> &to, std::int32_t priority);
  const lane_slot *at(std::size_t index) const noexcept;
  bool is_computing(const lane_slot &slot) const noexcept { return device_ordered_ && slot.index < compute_.size(); }
  lane_slot *least_loaded() noexcept;
  bool cores_are_full() const noexcept;
  lane_slot *find_core(const lane_demand &wanted) noexcept;
  lane_bits computing_among(lane_bits lanes) const noexcept {
    return lanes & (bit_of_lane(static_cast<std::uint32_t>(compute_.size())) - 1);
  }

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
  // In others_. A single copy in a lane of runs' copies would be queued behind copies that wait for GEMMs.
  lane_slot *urgent_ = nullptr, *copy_in_ = nullptr, *copy_out_ = nullptr;
  lane_slot *run_copy_in_ = nullptr, *run_copy_out_ = nullptr;
  std::size_t next_lane_ = 0;
  std::int64_t latest_urgent_ns_ = 0, latest_launch_ns_ = 0;
  std::atomic<std::int32_t> share_{0};      // in 1/1024 of the device
  std::atomic<std::int32_t> computing_{0};  // stand-alone commands of a device in compute_
  std::atomic<lane_slot *> awake_{nullptr};
};

}  // namespace sg
