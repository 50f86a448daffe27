// SPDX-License-Identifier: Apache-2.0
// Tells whoever asked that commands of one stream have ended, in order: a thread that waits for the events behind them,
// or whoever polls, which saves the time that waking a thread takes. One of them tells at a time. While somebody polls,
// the thread leaves the events to them: its own calls take locks of the driver's that launches need.
//
// An event that a thread can sleep on interrupts the host when it happens, whether somebody sleeps or not. On an H200
// those behind staged copies, two hundred in 16 ms, took half of the core that their interrupts went to, and with it
// half of a staging worker (no record is kept). So these events interrupt nobody: the thread looks at them, at
// intervals that grow with what it has waited. (A stream of its own that waits for the event, and an event to sleep on
// behind that, would share a connection to the device with other streams, which would then wait, too.)
//
// An event between two products keeps the second one's start from overlapping the first one's end: 3 us, and up to 7
// (no record is kept), on an H200. So short products come in bunches with one event behind the last: recorded when
// there are some of them, or when somebody polls or the thread looks, whichever is first.
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
  bool marked = false;  // an event behind it is recorded
  bool ended = false;   // it is known to have ended, as `outcome` says
  cudaError_t outcome = cudaSuccess;
  char *reason = nullptr;  // why products of this group failed alone; malloc's
  cudaEvent_t end = nullptr, untimed_end = nullptr;
  bool alone = false;         // nothing was in the stream when it was taken
  bool timed = true;          // `end` is recorded; otherwise `untimed_end`, and the host's clock tells the time
  std::int64_t start_ns = 0;  // when it was enqueued
  bool watched = false;       // the thread waits for it
  bool told = false;
  sg_backend_done done{nullptr, nullptr};
};

class completions {
 public:
  completions(device &owner, cudaStream_t of) noexcept : owner_(owner), stream_(of) {}
  ~completions();  // tells the rest, then joins its thread; not on that thread

  sg_status begin() noexcept;  // starts the thread

  // An unused record; nullptr with this thread's text when there is no memory. It goes back by put() or unused().
  completion *take() noexcept;
  static cudaEvent_t end_of(const completion &x) noexcept { return x.timed ? x.end : x.untimed_end; }
  void unused(completion *x) noexcept;
  void put(completion *x) noexcept;  // its command is enqueued; its end event is recorded if it is `marked`
  // Waits until all that was put has been told; returns at once on a thread that tells.
  void finish() noexcept;
  // Tells what has ended by now, on the calling thread.
  void poll() noexcept;

 private:
  static void *main(void *self);
  void rest(std::unique_lock<std::mutex> &lock) noexcept;
  void work() noexcept;
  completion *first_marked() const noexcept;
  bool mark_last() noexcept;
  void note_ended(const completion &last, cudaError_t outcome) noexcept;
  bool tell_ended(std::unique_lock<std::mutex> &lock) noexcept;  // whether there was anything to tell
  void tell_first(std::unique_lock<std::mutex> &lock) noexcept;
  void tell(completion &x) noexcept;
  static void destroy_events(const completion &x) noexcept;

  device &owner_;
  const cudaStream_t stream_;
  pthread_t thread_{};
  bool started_ = false;
  std::mutex lock_;  // what follows
  std::condition_variable changed_, told_;
  completion *first_ = nullptr, *last_ = nullptr, *free_ = nullptr;
  std::int32_t unmarked_ = 0;            // at the end of the list
  bool busy_ = false, closing_ = false;  // busy: somebody tells
  bool asleep_ = false;                  // the thread, until it is woken
  bool watching_ = false;                // the thread waits for an event
  bool poll_expected_ = false;           // the latest was told by a poll, so the next may be
  std::int64_t used_ns_ = 0;             // when the latest was put
  pthread_t teller_{};                   // who, while busy
  std::int64_t latest_end_ns_ = 0;       // who tells
};

}  // namespace sg::cuda
