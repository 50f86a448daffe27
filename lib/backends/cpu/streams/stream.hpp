// SPDX-License-Identifier: Apache-2.0
// A stream: a queue of commands, run in order, one at a time: by a worker thread, or by a thread that waits for the
// next command if it has not begun.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "backends/cpu/threads/event.hpp"
#include "backends/cpu/threads/free_core.hpp"
#include "backends/cpu/worker/workspace.hpp"
#include "command_queue.hpp"

namespace sg::cpu {

class device;

class stream {
 public:
  // priority: -1 low, 0 normal, 1 high (effective if the process may raise its threads' priority).
  static sg_status create(device &owner, std::int32_t priority, stream **out) noexcept;
  // Joins the worker. Nothing is in flight; must not be called on the stream's own worker.
  ~stream();
  stream(const stream &) = delete;
  stream &operator=(const stream &) = delete;

  device &owner() const noexcept { return owner_; }

  sg_status enqueue(const sg_backend_command &what, sg_backend_done done) noexcept;
  sg_status enqueue(const gemm_batch &what, sg_backend_done done) noexcept;
  sg_status wait(event &what) noexcept;
  void record(event &what) noexcept { what.record(*progress_, queue_.committed()); }

  // Runs the next command on the calling thread if no thread runs one and `wanted` is not 0 for its `done`. In two
  // steps: between them the caller releases the lock that keeps the stream from being destroyed; from then on the
  // command does.
  bool take_waiting(int32_t (*wanted)(const sg_backend_done *done, void *user), void *user) noexcept;
  void run_taken(workspace &space) noexcept;
  void leave_to_worker() noexcept { release_claim(); }  // the claimed command is not run here

  // Wakes the worker; false: it was awake.
  bool wake() noexcept;
  // While the device drains: sleeps until the queue is dropped and no command runs. Returns at once on the stream's own
  // worker.
  void wait_until_drained() noexcept;

 private:
  stream(device &owner, std::int32_t priority) noexcept : owner_(owner), priority_(priority) {}
  static void *worker_main(void *self);
  void work() noexcept;
  bool help() noexcept;
  bool may_help() const noexcept;
  void sleep() noexcept;
  bool claim() noexcept;
  void release_claim() noexcept;
  void run_front(workspace &space) noexcept;
  void runs_on(int core) noexcept;
  static sg_status execute(const command &what, workspace &space, sg_status &alone) noexcept;
  template <class Fill>
  sg_status submit(Fill fill) noexcept;

  device &owner_;
  const std::int32_t priority_;
  free_core core_;
  std::atomic<pid_t> worker_{0};  // 0: not started
  progress *progress_ = nullptr;
  command_queue queue_;
  workspace space_;
  pthread_t thread_{};
  bool started_ = false;
  std::atomic<int> runs_on_{
      awake_cores::nowhere};  // the worker's core, set by it or by the thread that sets its affinity
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
  std::atomic<bool> claimed_{false};  // a thread runs, or examines, the queue's next command
  std::atomic<bool> stop_{false};
  std::atomic<std::uint32_t> drained_{0};
};

}  // namespace sg::cpu
