// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/streams/completions.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <initializer_list>
#include <new>
#include <utility>

#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/process_end.hpp"
#include "backends/cuda/streams/device.hpp"

namespace sg::cuda {
namespace {

// After a poll, the thread leaves its events to polling threads for this time.
constexpr std::chrono::milliseconds polls_matter{2};
constexpr std::chrono::microseconds nap{50};
// Time that an idle stream's thread still naps, so that the next command need not wake it.
constexpr std::int64_t naps_for_ns = 1'000'000;
// Commands in a bunch: the first one's completion is notified when the last one has completed.
constexpr std::int32_t most_unmarked = 4;

// A stream waits so long for a lost GPU, from the loss or its own latest completion on.
constexpr std::int64_t waits_for_lost_ns = 5'000'000'000;
// After so long without a completion it asks the GPUs that it waits for whether they are lost, and then again.
constexpr std::int64_t looks_after_ns = 500'000'000;

// Fixed, whatever the process's limit is.
constexpr std::size_t stack_bytes = std::size_t{8} << 20;

}  // namespace

sg_status completions::begin() noexcept {
  // The thread inherits the mask: it handles no signals.
  sigset_t all, before;
  sigfillset(&all);
  // The application handles faults: a blocked fault signal would terminate the process without its handler.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    pthread_attr_setstacksize(&attributes, stack_bytes);
    error = pthread_create(&thread_, &attributes, main, this);
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return fail(SG_STATUS_OUT_OF_MEMORY, "no thread for a stream: error %d of pthread_create", error);
  started_ = true;
  return SG_STATUS_OK;
}

completions::~completions() {
  if (started_) {
    {
      const std::lock_guard lock(lock_);
      closing_ = true;
    }
    changed_.notify_one();
    pthread_join(thread_, nullptr);
  }
  const process_end::freeing now;
  // Not lost, not given up, and the process is not exiting: CUDA objects can be freed.
  if (owner_.usable() == SG_STATUS_OK && status() == SG_STATUS_OK) {
    const current here(owner_.context());
    for (const completion *x = free_; x != nullptr; x = x->next) destroy_events(*x);
  }
  while (free_ != nullptr) delete std::exchange(free_, free_->next);
}

void completions::destroy_events(const completion &x) noexcept {
  if (x.begin != nullptr) cudaEventDestroy(x.begin);
  if (x.end != nullptr) cudaEventDestroy(x.end);
  if (x.untimed_end != nullptr) cudaEventDestroy(x.untimed_end);
}

completion *completions::acquire() noexcept {
  bool alone = false;
  {
    const std::lock_guard lock(lock_);
    alone = first_ == nullptr;
    if (completion *x = free_) {
      free_ = x->next;
      x->alone = alone;
      x->begun = false;
      return x;
    }
  }
  auto *x = new (std::nothrow) completion;
  if (x == nullptr) {
    fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a command");
    return nullptr;
  }
  x->alone = alone;
  cudaError_t error = cudaEventCreateWithFlags(&x->untimed_end, cudaEventDisableTiming);
  if (error == cudaSuccess && owner_.timed()) error = cudaEventCreateWithFlags(&x->end, cudaEventDefault);
  if (owner_.check(error, "creating an event") == SG_STATUS_OK) return x;
  destroy_events(*x);
  delete x;
  return nullptr;
}

bool completions::mark_begin(completion &x) noexcept {
  cudaError_t error = x.begin ? cudaSuccess : cudaEventCreateWithFlags(&x.begin, cudaEventDefault);
  if (error == cudaSuccess) error = cudaEventRecord(x.begin, stream_);
  x.begun = error == cudaSuccess;
  if (!x.begun) cudaGetLastError();
  return x.begun;
}

void completions::unused(completion *x) noexcept {
  std::free(std::exchange(x->reason, nullptr));
  const std::lock_guard lock(lock_);
  x->next = free_;
  free_ = x;
}

void completions::put(completion *x) noexcept {
  x->next = nullptr;
  x->notified = x->completed = x->given_up = false;
  x->outcome = cudaSuccess;
  {
    const std::lock_guard lock(lock_);
    if (first_ == nullptr) progress_ns_.store(now_ns(), std::memory_order_relaxed);
    (first_ != nullptr ? last_->next : first_) = x;
    last_ = x;
    unmarked_ = x->marked ? 0 : unmarked_ + 1;
    if (unmarked_ >= most_unmarked) mark_last();
    used_ns_ = now_ns();
    if (!asleep_) return;
    asleep_ = false;
  }
  changed_.notify_one();
}

completion *completions::first_marked() const noexcept {
  completion *x = first_;
  while (x != nullptr && !x->marked) x = x->next;
  return x;
}

// Records an event behind all commands of the list. False: it cannot be recorded now.
bool completions::mark_last() noexcept {
  if (cudaEventRecord(end_of(*last_), stream_) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  last_->marked = true;
  unmarked_ = 0;
  return true;
}

// All commands up to `last` have completed. A failure's text is made by the notifying thread.
void completions::note_completed(const completion &last, cudaError_t outcome, bool given_up) noexcept {
  for (completion *x = first_;; x = x->next) {
    x->completed = true;
    x->given_up = given_up;
    x->outcome = outcome;
    if (x == &last) return;
  }
}

// Whether the stream has waited long enough for a GPU that is lost.
bool completions::is_stuck() noexcept {
  // First: a command may be enqueued behind the stuck ones while the stream is given up, and clear awaits().
  if (given_up_.load(std::memory_order_relaxed) >= 0) return true;
  const std::uint64_t awaited = awaits();
  if (awaited == 0) return false;
  int ordinal = -1;
  const std::int64_t now = now_ns(), progress_ns = progress_ns_.load(std::memory_order_relaxed);
  std::int64_t looked_ns = looked_ns_.load(std::memory_order_relaxed);
  if (now - std::max(progress_ns, looked_ns) > looks_after_ns &&
      looked_ns_.compare_exchange_strong(looked_ns, now, std::memory_order_relaxed))
    gpu::look_at(awaited);
  const std::int64_t lost_ns = gpu::lost_ns(awaited, ordinal);
  if (lost_ns == 0 || now - std::max(lost_ns, progress_ns) < waits_for_lost_ns) return false;
  given_up_.store(ordinal, std::memory_order_release);
  owner_.has_stuck_stream();
  return true;
}

sg_status completions::status() noexcept {
  const int ordinal = given_up_.load(std::memory_order_acquire);
  if (ordinal < 0) return SG_STATUS_OK;
  return fail(SG_STATUS_BACKEND_FAILURE, "cuda:%d: commands that wait for cuda:%d, which is lost, are given up",
              owner_.ordinal(), ordinal);
}

// The state once it is another than cudaErrorNotReady, or the stream is to be given up.
template <class State>
cudaError_t completions::wait_while_busy(State &&state) noexcept {
  constexpr std::int64_t least_ns = 10'000, most_ns = 200'000;
  const std::int64_t begun_ns = now_ns();
  for (;;) {
    const cudaError_t now = state();
    if (now != cudaErrorNotReady || is_stuck()) return now;
    const timespec time{0, static_cast<long>(std::clamp((now_ns() - begun_ns) / 64, least_ns, most_ns))};
    nanosleep(&time, nullptr);
  }
}

void completions::settle() noexcept {
  wait_while_busy([this] { return state_of(stream_); });
}

void completions::finish() noexcept {
  if (!started_) return;
  std::unique_lock lock(lock_);
  if (busy_ && pthread_equal(notifier_, pthread_self())) return;
  notified_.wait(lock, [this] { return first_ == nullptr && !busy_ && !watching_; });
}

bool completions::is_at_rest() noexcept {
  if (!started_) return true;
  const std::lock_guard lock(lock_);
  if (busy_) return pthread_equal(notifier_, pthread_self()) != 0;
  return first_ == nullptr && !watching_;
}

void *completions::main(void *self) {
  auto *own = static_cast<completions *>(self);
  pthread_setname_np(pthread_self(), "streamgemm-cuda");
  prctl(PR_SET_TIMERSLACK, 1000ul);  // ns: for naps of accurate length
  const current here(own->owner_.context());
  own->work();
  return nullptr;
}

void completions::work() noexcept {
  std::unique_lock lock(lock_);
  for (;;) {
    if (first_ == nullptr && closing_) return;
    if (first_ == nullptr || busy_) {
      rest(lock);
      continue;
    }
    // The thread that polled for the latest command may be about to poll for this one.
    if (owner_.polled_within(polls_matter) || std::exchange(poll_expected_, false)) {
      rest(lock);
      if (!owner_.polled_within(nap))
        notify_completed(lock);  // otherwise the polling thread notifies, on a core with warm caches
      continue;
    }
    const bool has_event = first_marked() != nullptr || mark_last();
    completion *x = has_event ? first_marked() : last_;
    x->watched = watching_ = true;
    lock.unlock();
    const cudaError_t outcome = wait_while_busy([&] { return has_event ? state_of(end_of(*x)) : state_of(stream_); });
    lock.lock();
    x->watched = watching_ = false;
    if (x->notified) {  // by a poll, which left the record to this thread
      x->next = free_;
      free_ = x;
    } else if (!busy_) {
      const bool given_up = outcome == cudaErrorNotReady;
      note_completed(given_up ? *last_ : *x, outcome, given_up);
      notify_completed(lock);
    }  // otherwise another thread is notifying of it
    if (first_ == nullptr && !busy_) notified_.notify_all();
  }
}

// Sleeps until there may be work for the thread.
void completions::rest(std::unique_lock<std::mutex> &lock) noexcept {
  if (first_ != nullptr || now_ns() - used_ns_ < naps_for_ns) {
    changed_.wait_for(lock, nap);
    return;
  }
  asleep_ = true;
  changed_.wait(lock, [this] { return !asleep_ || closing_; });
  asleep_ = false;
}

void completions::poll() noexcept {
  std::unique_lock lock(lock_, std::try_to_lock);
  if (lock.owns_lock() && notify_completed(lock)) poll_expected_ = true;
}

bool completions::notify_completed(std::unique_lock<std::mutex> &lock) noexcept {
  bool any = false;
  while (first_ != nullptr && !busy_) {
    if (!first_->completed) {
      if (first_marked() == nullptr && !mark_last()) break;  // the thread waits for the stream
      const completion *marked = first_marked();
      const cudaError_t state = state_of(end_of(*marked));
      const bool given_up = state == cudaErrorNotReady;
      if (given_up && !is_stuck()) break;
      note_completed(given_up ? *last_ : *marked, state, given_up);
    }
    notify_first(lock);
    any = true;
  }
  return any;
}

// The first command has completed, and no thread notifies.
void completions::notify_first(std::unique_lock<std::mutex> &lock) noexcept {
  completion *x = first_;
  first_ = x->next;
  busy_ = true;
  progress_ns_.store(now_ns(), std::memory_order_relaxed);
  notifier_ = pthread_self();
  lock.unlock();
  notify(*x);
  lock.lock();
  busy_ = false;
  x->notified = true;
  if (!x->watched) {
    x->next = free_;
    free_ = x;
  }
  if (first_ == nullptr) notified_.notify_all();
}

void completions::notify(completion &x) noexcept {
  sg_backend_result result{};
  result.status = x.given_up ? status() : owner_.check(x.outcome, "waiting for a command");
  if (result.status != SG_STATUS_OK) {
    result.message = failure_text();
  } else if (owner_.timed()) {
    // Monotonic: a command timed by the host seems to end later than it does.
    result.end_ns = std::max(x.timed ? owner_.time_of(x.end) : now_ns(), latest_end_ns_);
    const std::int64_t start_ns = x.begun ? owner_.time_of(x.begin) : x.start_ns;
    result.start_ns = std::min(std::max(start_ns, latest_end_ns_), result.end_ns);
    latest_end_ns_ = result.end_ns;
  }
  if (result.status == SG_STATUS_OK) result.message = x.reason;
  x.done.fn(x.done.user, &result);
  std::free(std::exchange(x.reason, nullptr));
}

}  // namespace sg::cuda
