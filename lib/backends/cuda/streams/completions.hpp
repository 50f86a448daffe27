// SPDX-License-Identifier: Apache-2.0
// Notifies of the completion of one stream's commands, in order: from a thread that waits for the events behind them,
// or from a thread that polls, which saves the time of a wake-up. One thread notifies at a time. While others poll, the
// waiting thread leaves the events to them: its own calls take the driver's locks, which launches need.
//
// A blocking event interrupts the host even if no thread sleeps on it. On an H200 the events behind staged copies, two
// hundred in 16 ms, took half of the core that served their interrupts, and with it half of a staging worker (no record
// is kept). So these events do not interrupt: the thread queries them, at intervals that grow with its wait. (A
// separate stream that waits for the event, with a blocking event behind that, would share a connection to the device
// with other streams, which would then wait too.)
//
// An event between two GEMMs prevents the second one's start from overlapping the first one's tail: 3 us, and up to 7
// (no record is kept), on an H200. So a bunch of short GEMMs has one event, behind the last: it is recorded when the
// bunch is full, at a poll, or when the thread queries the stream, whichever is first.
//
// A stream that waits for an event of another GPU may wait for ever once that one is lost. It is given up some seconds
// later: its commands are notified as failed, and it takes no others.
//
// A thread and not cudaLaunchHostFunc, because a host function blocks the stream's next command until it returns, and
// must not enqueue.
#pragma once

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <streamgemm/backend.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace sg::cuda {

class device;

// A command whose completion is to be notified. Its events are reused.
struct completion {
  completion *next = nullptr;
  bool marked = false;     // an event behind it is recorded
  bool completed = false;  // `outcome` is valid, or the stream was given up
  bool given_up = false;
  cudaError_t outcome = cudaSuccess;
  char *reason = nullptr;  // the reason that GEMMs of this group failed alone; allocated by malloc
  cudaEvent_t begin = nullptr, end = nullptr, untimed_end = nullptr;
  bool begun = false;         // `begin` is recorded: before the command, behind what the stream waited for
  bool alone = false;         // the stream was empty when the record was acquired
  bool timed = true;          // `end` is recorded; otherwise `untimed_end`, and the host's time is used
  std::int64_t start_ns = 0;  // time of the enqueue call
  bool watched = false;       // the thread waits for it
  bool notified = false;
  sg_backend_done done{nullptr, nullptr};
};

class completions {
 public:
  completions(device &owner, cudaStream_t of) noexcept : owner_(owner), stream_(of) {}
  ~completions();  // notifies of the remaining commands, then joins its thread; not on that thread

  sg_status begin() noexcept;  // starts the thread

  // An unused record; nullptr, with this thread's text set: out of memory. Return it by put() or unused().
  completion *acquire() noexcept;
  static cudaEvent_t end_of(const completion &x) noexcept { return x.timed ? x.end : x.untimed_end; }
  bool mark_begin(completion &x) noexcept;  // false: it cannot be
  void unused(completion *x) noexcept;
  void put(completion *x) noexcept;  // its command is enqueued; if `marked`, its end event is recorded
  // Waits until all commands so far are notified; returns at once on the notifying thread.
  void finish() noexcept;
  bool is_at_rest() noexcept;  // whether finish() would return at once
  // Notifies of completed commands, on the calling thread.
  void poll() noexcept;
  // Waits until the stream has no command left, or is to be given up.
  void settle() noexcept;

  // GPUs, bit i for ordinal i, whose loss may keep the stream's present commands from completing.
  std::uint64_t awaits() const noexcept { return awaits_.load(std::memory_order_relaxed); }
  void await(std::uint64_t ordinals) noexcept {
    if (ordinals != 0) awaits_.fetch_or(ordinals, std::memory_order_relaxed);
  }
  void awaits_none() noexcept { awaits_.store(0, std::memory_order_relaxed); }
  sg_status status() noexcept;  // SG_STATUS_OK, or SG_STATUS_BACKEND_FAILURE: it is given up

 private:
  static void *main(void *self);
  void rest(std::unique_lock<std::mutex> &lock) noexcept;
  void work() noexcept;
  bool is_stuck() noexcept;
  template <class State>
  cudaError_t wait_while_busy(State &&state) noexcept;
  completion *first_marked() const noexcept;
  bool mark_last() noexcept;
  void note_completed(const completion &last, cudaError_t outcome, bool given_up = false) noexcept;
  bool notify_completed(std::unique_lock<std::mutex> &lock) noexcept;  // true: at least one was notified
  void notify_first(std::unique_lock<std::mutex> &lock) noexcept;
  void notify(completion &x) noexcept;
  static void destroy_events(const completion &x) noexcept;

  device &owner_;
  const cudaStream_t stream_;
  pthread_t thread_{};
  bool started_ = false;
  std::atomic<std::uint64_t> awaits_{0};
  std::atomic<std::int64_t> progress_ns_{0};  // when a command was put in an empty list, or notified
  std::atomic<std::int64_t> looked_ns_{0};    // when it last asked whether the GPUs that it waits for are lost
  std::atomic<int> given_up_{-1};             // the ordinal of the GPU that it waited for; -1: it is not
  std::mutex lock_;                           // guards the members below
  std::condition_variable changed_, notified_;
  completion *first_ = nullptr, *last_ = nullptr, *free_ = nullptr;
  std::int32_t unmarked_ = 0;            // at the end of the list
  bool busy_ = false, closing_ = false;  // busy: a thread notifies
  bool asleep_ = false;                  // the thread sleeps until woken
  bool watching_ = false;                // the thread waits for an event
  bool poll_expected_ = false;           // a poll notified of the latest command, and may of the next
  std::int64_t used_ns_ = 0;             // when the latest record was put
  pthread_t notifier_{};                 // while busy_: the thread that notifies
  std::int64_t latest_end_ns_ = 0;       // of the notifying thread
};

}  // namespace sg::cuda
