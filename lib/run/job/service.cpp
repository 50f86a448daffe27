// SPDX-License-Identifier: Apache-2.0
#include "run/job/service.hpp"

#include <memory>

#include "base/linked_list.hpp"
#include "base/thread.hpp"
#include "run/job/job_home.hpp"
#include "run/job/process.hpp"

namespace sg {

namespace {
thread_local int t_functions = 0;  // of jobs, that this thread runs: it may help others from within one
thread_local const job_home *t_home = nullptr;
}  // namespace

bool in_function_of_job() noexcept { return t_functions > 0; }
function_of_job::function_of_job() noexcept { ++t_functions; }
function_of_job::~function_of_job() { --t_functions; }
bool in_callback_of(const job_home &which) noexcept { return t_home == &which; }

void run_callback(callback_request *request) noexcept {
  const std::unique_ptr<callback_request> owned(request);
  job *const target = request->target.get();
  t_home = target ? &target->owner() : request->home.get();
  if (target) target->mark_observed();  // before the callback may pass the memory on
  if (!process_exits())
    request->run(request->handle, target ? target->status() : SG_STATUS_OK, request->user, request->fn);
  t_home = nullptr;
  release_handle(request->handle, request->handle_type);
}

service *service::start(job_home &owner) {
  std::unique_ptr<service> made(new service(owner));
  thread("sg-service", [self = made.get()] { self->run(); }).detach();
  return made.release();
}

void service::post(callback_request *request) noexcept {
  push_to(posted_, *request);
  wake();
}

void service::wake() noexcept {
  // The context may be destroyed once the thread has seen the change.
  const std::atomic<std::uint32_t> &word = changes_;
  changes_.fetch_add(2, std::memory_order_release);
  futex_wake_all(word);
}

void service::sweep_at(std::int64_t ns) {
  constexpr std::int64_t ms = 1'000'000;
  const std::int64_t at = ns / ms >= INT64_MAX / ms ? INT64_MAX : (ns / ms + 1) * ms;
  bool is_first;
  {
    const std::lock_guard lock(sweeps_lock_);
    const auto place = sweeps_.insert(at).first;
    is_first = place == sweeps_.begin();  // after the insertion: operands of == have no evaluation order
  }
  if (is_first) wake();
}

deadline service::sweep_due() noexcept {
  const std::int64_t now = monotonic_ns();
  std::unique_lock lock(sweeps_lock_);
  const auto end = sweeps_.upper_bound(now);
  const bool due = sweeps_.begin() != end;
  sweeps_.erase(sweeps_.begin(), end);
  const deadline next = sweeps_.empty() ? deadline(-1) : deadline::at(*sweeps_.begin());
  lock.unlock();
  if (due) owner_.sweep();
  return next;
}

void service::retire() noexcept {
  // The thread deletes this object as soon as it sees the bit: after the store only the address of the word is used.
  const std::atomic<std::uint32_t> &word = changes_;
  changes_.fetch_or(retired_bit, std::memory_order_release);
  futex_wake_all(word);
}

void service::serve() noexcept {
  for (callback_request *r = take_in_order(posted_); r;) {
    callback_request *const next = r->next;
    run_callback(r);
    r = next;
  }
}

void service::run() noexcept {
  for (;;) {
    const std::uint32_t seen = changes_.load(std::memory_order_acquire);
    serve();
    owner_.free_unused_buffers();
    if (seen & retired_bit) break;
    futex_wait(changes_, seen, sweep_due());
  }
  if (!begin_destruction()) return;
  delete &owner_;
  delete this;
  end_destruction();
}

}  // namespace sg
