// SPDX-License-Identifier: Apache-2.0
// A stream: a worker thread and the queue of what it is to do, in order.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "command_queue.hpp"
#include "event.hpp"
#include "free_core.hpp"
#include "workspace.hpp"

namespace sg::cpu {

class device;

class stream {
 public:
  // priority: -1 low, 0 normal, 1 high (which takes effect where the process may raise its threads).
  static sg_status create(device &owner, std::int32_t priority, stream **out) noexcept;
  // Joins the worker. Nothing is in flight; not to be called on the stream's own worker.
  ~stream();
  stream(const stream &) = delete;
  stream &operator=(const stream &) = delete;

  device &owner() const noexcept { return owner_; }

  sg_status copy(const sg_backend_copy &what, sg_backend_done done) noexcept;
  sg_status gemm(const sg_backend_gemm &what, sg_backend_done done) noexcept;
  sg_status gemm_group(const product_group &what, sg_backend_done done) noexcept;
  sg_status reduce(const sg_backend_reduce &what, sg_backend_done done) noexcept;
  sg_status notify(sg_backend_done done) noexcept;
  sg_status wait(event &what) noexcept;
  void record(event &what) noexcept { what.record(*progress_, queue_.committed()); }

  // While the device drains: wakes the worker, and sleeps until it has dropped what is queued and runs nothing. Returns
  // at once on the stream's own worker.
  void wake() noexcept;
  void wait_until_drained() noexcept;

 private:
  stream(device &owner, std::int32_t priority) noexcept : owner_(owner), priority_(priority) {}
  static void *worker_main(void *self);
  void work() noexcept;
  void sleep() noexcept;
  void run_front() noexcept;
  void runs_on(int core) noexcept;
  sg_status execute(const command &what, sg_status &alone) noexcept;
  template <class Fill>
  sg_status submit(Fill fill) noexcept;

  device &owner_;
  const std::int32_t priority_;
  free_core core_;
  std::atomic<pid_t> worker_{0};  // 0: it has not begun
  progress *progress_ = nullptr;
  command_queue queue_;
  workspace space_;
  pthread_t thread_{};
  bool started_ = false;
  std::atomic<int> runs_on_{awake_cores::nowhere};  // the worker, as it has said, or who leads it
  alignas(64) std::atomic<std::uint32_t> asleep_{0};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint32_t> drained_{0};
};

}  // namespace sg::cpu
