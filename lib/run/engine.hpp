// SPDX-License-Identifier: Apache-2.0
// Runs jobs that are ready: an event-driven machine over the backend's streams and the staging workers.
//
// No thread of its own, and no lock: whoever brings news (a job that became ready, a command that ended) leaves it in a
// lock-free list and asks for a pump. The first to ask works until nobody has asked again; the others go on at once. All
// members below the line are touched by that one thread only.
//
// On a device with memory of its own, commands go out ahead of time, ordered on the device by its streams and events. On
// the cpu a command goes out when what it waits for has ended, to whichever lane is free: no worker ever waits for another.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/device.hpp"
#include "plan/device_model.hpp"
#include "run/arena_pool.hpp"
#include "run/flight.hpp"
#include "run/job.hpp"
#include "run/lower.hpp"
#include "run/schedule_run.hpp"
#include "run/stager.hpp"

namespace sg {

class engine {
 public:
  engine(const device &on, const device_model &model, arena_pool &device_memory, arena_pool &staging_memory);
  ~engine();  // nothing is in flight
  engine(const engine &) = delete;
  engine &operator=(const engine &) = delete;

  void push(job &ready) noexcept;  // takes over the engine's reference
  void sweep() noexcept;           // some job was cancelled

 private:
  void destroy_streams() noexcept;

  static constexpr int priorities = 3;
  enum work_class { to_device, from_device, computing, work_classes };

  struct job_list {
    job *first = nullptr, *last = nullptr;
    void push_back(job &j) noexcept;
    job &pop_front() noexcept;
  };

  static void piece_ended(void *user, const sg_backend_result *result);
  void piece_of(flight &f, sg_status status, const char *message, std::int64_t start_ns, std::int64_t end_ns,
                std::int32_t pieces) noexcept;
  void flight_ended(flight &f) noexcept;
  void pump() noexcept;

  // ---- with the token ----
  void step() noexcept;
  void sort_in(job &ready) noexcept;
  static bool ends_unrun(job &ready) noexcept;
  void drop_cancelled() noexcept;
  void start_ready(int priority) noexcept;
  bool start_first(job_list &from, work_class what) noexcept;
  bool start_run(job &ready) noexcept;
  void advance(job &running) noexcept;
  bool may_go(const job &running, std::uint32_t command) const noexcept;
  bool issue(job &running, std::uint32_t command) noexcept;  // false: no lane is free
  void command_ended(flight &f) noexcept;
  void end_run(job &running) noexcept;

  lane_slot *lane_for(command_kind kind, lane where, bool alone) noexcept;
  lane_slot *free_lane(work_class what, bool alone) noexcept;
  bool has_room(const lane_slot &slot, bool alone) const noexcept;
  void launch(flight &f, const command *c) noexcept;
  template <class Calls, class Enqueue>
  void enqueue(flight &f, const Calls &calls, Enqueue &&enqueue_one) noexcept;
  void wait_for_others(job &running, std::uint32_t command, lane_slot &slot);
  void stage(flight &f) noexcept;

  const device &device_;
  const sg_backend_ops &ops_;
  const bool device_ordered_;  // see above
  const std::int32_t depth_;
  arena_pool &device_memory_;
  arena_pool &staging_memory_;

  std::atomic<job *> inbox_{nullptr};
  std::atomic<flight *> ended_{nullptr};
  std::atomic<bool> sweep_wanted_{false};
  std::atomic<std::uint32_t> requests_{0};

  std::vector<std::unique_ptr<lane_slot>> compute_;
  lane_slot copy_in_, copy_out_;
  std::size_t next_lane_ = 0;
  std::array<std::array<job_list, work_classes>, priorities> ready_;
  std::array<std::vector<job *>, priorities> running_;
  std::vector<sg_backend_event *> events_;  // unused ones
  pointer_scratch pointers_;
  std::vector<sg_backend_copy> copies_;
  std::vector<sg_backend_reduce> reduces_;
  stager stager_;
};

}  // namespace sg
