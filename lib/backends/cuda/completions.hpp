// SPDX-License-Identifier: Apache-2.0
// Tells whoever asked that commands of one stream have ended: a thread that sleeps on the events behind them, in order.
//
// A thread of our own and not cudaLaunchHostFunc, because a host function holds back the stream's next command until it
// has returned, and may not enqueue.
#pragma once

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <streamgemm/backend.h>

#include <condition_variable>
#include <mutex>

namespace sg::cuda {

class device;

// A command whose end is to be told. The events are its own and are used again.
struct completion {
  completion *next = nullptr;
  cudaEvent_t start = nullptr, end = nullptr;
  bool has_start = false;
  sg_backend_done done{nullptr, nullptr};
};

class completions {
 public:
  explicit completions(device &owner) noexcept : owner_(owner) {}
  ~completions();  // tells the rest, then joins its thread; not on that thread

  sg_status begin() noexcept;  // starts the thread

  // An unused record; nullptr with this thread's text when there is no memory. It goes back by put() or unused().
  completion *take() noexcept;
  void unused(completion *x) noexcept;
  void put(completion *x) noexcept;  // its end event is recorded
  bool idle() noexcept;  // all that was put has been told
  // Waits until all that was put has been told; returns at once on the thread that tells.
  void finish() noexcept;

 private:
  static void *main(void *self);
  void work() noexcept;
  void tell(completion &x) noexcept;
  void destroy(completion *x) noexcept;

  device &owner_;
  pthread_t thread_{};
  bool started_ = false;
  std::mutex lock_;  // what follows
  std::condition_variable changed_, told_;
  completion *first_ = nullptr, *last_ = nullptr, *free_ = nullptr;
  bool busy_ = false, closing_ = false;
  std::int64_t latest_end_ns_ = 0;  // the thread's own
};

}  // namespace sg::cuda
