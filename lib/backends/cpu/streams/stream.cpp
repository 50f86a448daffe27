// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "backends/cpu/gemm/gemm.hpp"
#include "backends/cpu/threads/clock.hpp"
#include "backends/cpu/threads/thread.hpp"
#include "backends/cpu/worker/failure.hpp"
#include "device.hpp"

namespace sg::cpu {
namespace {

thread_local const stream *t_own = nullptr;  // the stream that this worker runs

// Copies the caller's pointer arrays into the command. False: out of memory.
bool own_arrays(command &what) noexcept {
  what.owned_arrays = nullptr;
  if (what.one().kind != SG_BACKEND_GEMM) return true;
  auto &gemm = *reinterpret_cast<sg_backend_gemm *>(what.bytes);
  const std::size_t count = static_cast<std::size_t>(gemm.batch);
  const std::size_t arrays = (gemm.a_array != nullptr) + (gemm.b_array != nullptr) + (gemm.c_array != nullptr);
  if (arrays == 0) return true;
  auto **memory = static_cast<void **>(std::calloc(count, arrays * sizeof(void *)));
  if (memory == nullptr) return false;
  what.owned_arrays = memory;
  const auto move = [&memory, count]<class Array>(Array &array) {
    if (array == nullptr) return;
    std::memcpy(memory, array, count * sizeof(void *));
    array = reinterpret_cast<Array>(memory);
    memory += count;
  };
  move(gemm.a_array);
  move(gemm.b_array);
  move(gemm.c_array);
  return true;
}

}  // namespace

sg_status stream::create(device &owner, std::int32_t priority, stream **out) noexcept {
  auto *fresh = new (std::nothrow) stream(owner, priority);
  if (fresh == nullptr || !fresh->queue_.open() || (fresh->progress_ = progress::create()) == nullptr) {
    delete fresh;
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a stream");
  }
  if (!start_thread(fresh->thread_, worker_main, fresh)) {
    delete fresh;
    return fail(SG_STATUS_OUT_OF_MEMORY, "no worker thread for a stream");
  }
  fresh->started_ = true;
  *out = fresh;
  return SG_STATUS_OK;
}

stream::~stream() {
  if (started_) {
    stop_.store(true, std::memory_order_seq_cst);
    wake();
    pthread_join(thread_, nullptr);
    runs_on(awake_cores::nowhere);
  }
  if (progress_ != nullptr) progress_->release();
}

template <class Fill>
sg_status stream::submit(Fill fill) noexcept {
  if (owner_.draining()) return fail(SG_STATUS_SHUTDOWN, "the process is exiting");
  command *slot = queue_.reserve();
  if (slot == nullptr || !fill(*slot)) return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a command");
  queue_.commit();
  wake();
  return SG_STATUS_OK;
}

sg_status stream::enqueue(const sg_backend_command &what, sg_backend_done done) noexcept {
  const operation *const known = operation_of(what.kind);
  if (known == nullptr || !known->supports(what))
    return fail(SG_STATUS_UNSUPPORTED, "the cpu does not support %s of these types", name_of(what.kind));
  return submit([&](command &x) {
    x.kind = command_kind::one;
    x.done = done;
    x.what = known;
    // Fields unknown to an older core are 0.
    const std::size_t given = std::min<std::size_t>(what.struct_size, known->size);
    std::memcpy(x.bytes, &what, given);
    std::memset(x.bytes + given, 0, known->size - given);
    return own_arrays(x);
  });
}

sg_status stream::enqueue(const gemm_batch &what, sg_backend_done done) noexcept {
  if (!operation_of(SG_BACKEND_GEMM)->supports(*what.gemms[0]))
    return fail(SG_STATUS_UNSUPPORTED, "the cpu has no GEMM of these types");
  return submit([&](command &x) {
    x.kind = command_kind::batch;
    x.done = done;
    x.batch = what;
    return true;
  });
}

sg_status stream::wait(event &what) noexcept {
  const stream_position until = what.recorded();
  if (until.of == nullptr) return SG_STATUS_OK;
  if (until.of == progress_ || until.of->completed() >= until.count) {
    until.of->release();
    return SG_STATUS_OK;
  }
  const sg_status status = submit([&](command &x) {
    x.kind = command_kind::wait;
    x.done = {nullptr, nullptr};
    x.until = until;
    return true;
  });
  if (status != SG_STATUS_OK) until.of->release();
  return status;
}

// Sequentially consistent with sleep(): either the worker sees the command (or the flag), or this thread sees it
// asleep.
bool stream::wake() noexcept {
  if (asleep_.load(std::memory_order_seq_cst) == 0) return false;
  if (asleep_.exchange(0, std::memory_order_seq_cst) == 0) return false;
  if (!stop_.load(std::memory_order_relaxed)) {  // a stopping worker may have exited
    const int core = core_.steer(worker_.load(std::memory_order_relaxed), owner_.streams(), owner_.awake());
    if (core != awake_cores::nowhere) runs_on(core);
  }
  futex_wake_all(asleep_);
  return true;
}

void stream::wait_until_drained() noexcept {
  if (t_own == this) return;
  while (drained_.load(std::memory_order_seq_cst) == 0) futex_wait(drained_, 0);
}

void *stream::worker_main(void *self) {
  auto *own = static_cast<stream *>(self);
  t_own = own;
  own->worker_.store(gettid(), std::memory_order_relaxed);
  pthread_setname_np(pthread_self(), "streamgemm-cpu");
  // Nice values are per thread on Linux. Most processes may not raise a priority; the thread then keeps its own.
  if (own->priority_ != 0) setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 5 * own->priority_);
  own->work();
  return nullptr;
}

void stream::work() noexcept {
  for (;;) {
    while (!queue_.empty() && claim()) {
      core_.leave();
      runs_on(sched_getcpu());
      if (!queue_.empty()) run_front(space_);
      claimed_.store(false, std::memory_order_seq_cst);
    }
    if (stop_.load(std::memory_order_seq_cst)) return runs_on(awake_cores::nowhere);
    if (!help()) sleep();
  }
}

// Commands in its own queue come first, whichever thread runs them.
bool stream::may_help() const noexcept {
  return queue_.empty() && !stop_.load(std::memory_order_relaxed) && !owner_.draining();
}

// Computes parts of blocking calls; false: there were none. Afterwards it polls for the next call for a short time, if
// calls follow each other closely.
bool stream::help() noexcept {
  shared_calls &calls = owner_.calls();
  bool has_helped = false;
  while (may_help() && calls.any()) {
    if (!has_helped) runs_on(sched_getcpu());
    while (may_help() && calls.run_one(space_)) has_helped = true;
    core_.leave();
    if (!has_helped || !calls.in_a_row()) break;
    owner_.polls();
    for (const std::int64_t until_ns = now_ns() + shared_calls::poll_ns;
         may_help() && !calls.any() && now_ns() < until_ns;)
      relax();
    owner_.polls_no_longer();
  }
  core_.leave();
  return has_helped;
}

bool stream::claim() noexcept {
  return !claimed_.load(std::memory_order_relaxed) && !claimed_.exchange(true, std::memory_order_seq_cst);
}

// Called by a thread that is not the worker, which may have gone to sleep meanwhile. Sequentially consistent with
// sleep(): either it sees the worker asleep, or the worker sees that no thread holds the claim.
void stream::release_claim() noexcept {
  claimed_.store(false, std::memory_order_seq_cst);
  if (!queue_.empty() || owner_.draining()) wake();
}

bool stream::take_waiting(int32_t (*wanted)(const sg_backend_done *done, void *user), void *user) noexcept {
  if (queue_.empty() || !claim()) return false;
  if (!queue_.empty()) {
    const command &next = queue_.front();
    if (next.kind != command_kind::wait && next.done.fn != nullptr && wanted(&next.done, user) != 0) return true;
  }
  release_claim();
  return false;
}

void stream::run_taken(workspace &space) noexcept {
  run_front(space);
  release_claim();
}

void stream::sleep() noexcept {
  asleep_.store(1, std::memory_order_seq_cst);
  const bool taken = claimed_.load(std::memory_order_seq_cst);
  if ((!queue_.empty() && !taken) || stop_.load(std::memory_order_seq_cst) || (may_help() && owner_.calls().any())) {
    asleep_.store(0, std::memory_order_relaxed);
    return;
  }
  if (!taken && owner_.draining() && drained_.exchange(1, std::memory_order_seq_cst) == 0) futex_wake_all(drained_);
  runs_on(awake_cores::nowhere);
  while (asleep_.load(std::memory_order_seq_cst) != 0) {
    futex_wait(asleep_, 1);
    if (asleep_.load(std::memory_order_seq_cst) == 0) break;
    // It was steered for a command that it was already awake for.
    core_.leave();
    runs_on(awake_cores::nowhere);
  }
}

void stream::runs_on(int core) noexcept {
  if (core == runs_on_.load(std::memory_order_relaxed)) return;
  owner_.awake().moves(runs_on_.exchange(core, std::memory_order_relaxed), core);
}

void stream::run_front(workspace &space) noexcept {
  command &what = queue_.front();
  sg_backend_result result = {};
  if (what.done.fn != nullptr) result.start_ns = now_ns();
  sg_status alone = SG_STATUS_OK;
  space.stopped = owner_.stopped();
  space.command = what.done.fn != nullptr ? &what.done : nullptr;
  failure_text()[0] = '\0';
  result.status = owner_.draining()    ? SG_STATUS_SHUTDOWN
                  : space.is_stopped() ? SG_STATUS_CANCELLED  // stopped while queued behind another command
                                       : execute(what, space, alone);
  space.command = nullptr;
  const sg_backend_done done = what.done;
  if (what.kind == command_kind::wait) what.until.of->release();
  if (what.kind == command_kind::one) std::free(what.owned_arrays);
  queue_.pop();
  progress_->advance();
  if (done.fn == nullptr) return;
  const bool has_text = result.status != SG_STATUS_OK && failure_text()[0] != '\0';
  result.message = has_text ? failure_text() : text_of(result.status != SG_STATUS_OK ? result.status : alone);
  result.end_ns = now_ns();
  done.fn(done.user, &result);
}

// `alone`: the status of the first GEMM that fails in its batch.
sg_status stream::execute(const command &what, workspace &space, sg_status &alone) noexcept {
  switch (what.kind) {
    case command_kind::wait: what.until.of->wait_for(what.until.count); return SG_STATUS_OK;
    case command_kind::one: return what.what->run(what.one(), space);
    case command_kind::batch:
      for (std::int32_t i = 0; i < what.batch.count; ++i) {
        const sg_backend_gemm *const following = i + 1 < what.batch.count ? &what.batch.gemm(i + 1) : nullptr;
        what.batch.statuses[i] = run_gemm(what.batch.gemm(i), following, space);
        if (alone == SG_STATUS_OK) alone = what.batch.statuses[i];
      }
      return SG_STATUS_OK;
  }
  return SG_STATUS_INTERNAL;
}

}  // namespace sg::cpu
