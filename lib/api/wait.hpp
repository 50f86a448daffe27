// SPDX-License-Identifier: Apache-2.0
// Waits for jobs on behalf of a caller.
#pragma once

#include <streamgemm/job.h>

#include <memory>

#include "api/entry.hpp"
#include "run/job/job.hpp"
#include "run/job/service.hpp"

namespace sg {

// The status of a completed job, which the application has now observed; its message becomes the thread's.
inline sg_status outcome_of(const job &completed) noexcept {
  if (completed.status() != SG_STATUS_OK) set_last_error(completed.status(), completed.message());
  completed.mark_observed();
  return completed.status();
}

// A deadline from the caller's timeout.
inline deadline deadline_of(std::int64_t timeout_ns) {
  require_range(timeout_ns, SG_FOREVER, INT64_MAX, "timeout_ns");
  return deadline(timeout_ns);
}

// Throws in a function of a custom operation, which occupies a thread that the awaited job may need.
inline void require_may_wait() {
  if (in_function_of_job())
    throw error(SG_STATUS_DEADLOCK, "a function of a custom operation would wait in the library");
}

// Waits until the job has completed. False: timed out.
inline bool wait_for(job &target, const deadline &until) {
  if (!target.done() && !until.passed()) require_may_wait();
  return target.wait(until);
}

// Calls `fn` with the handle once the job has completed. A reference keeps the handle valid until then.
inline void request_callback(const ref<job> &target, handle_bits handle, object_type type,
                             void (*run)(handle_bits, sg_status, void *, void *), void *fn, void *user) {
  auto request = std::make_unique<callback_request>();
  if (!retain_handle(handle, type)) throw_invalid_handle(handle_of<void>(handle), type, "handle");
  request->run = run;
  request->fn = fn;
  request->user = user;
  request->handle = handle;
  request->handle_type = type;
  request->target = target;
  target->call_back(request.release());
}

// Calls `submit(&pending)`, which may compute on this thread, and waits for the job if there is one (see
// checked_submit::will_wait).
template <class Submit>
sg_status submit_and_wait_here(Submit &&submit) {
  sg_status result = SG_STATUS_OK;
  const sg_status call = guarded([&] {
    require_may_wait();
    ref<job> pending;
    submit(&pending);
    if (!pending) return;  // completed successfully, or recorded into a graph
    pending->wait(deadline(-1));
    result = outcome_of(*pending);
  });
  return call == SG_STATUS_OK ? result : call;
}

// Calls `submit(&job)` and waits for the job.
template <class Submit>
sg_status submit_and_wait(Submit &&submit) {
  if (const sg_status refused = guarded(require_may_wait); refused != SG_STATUS_OK) return refused;
  sg_job *handle = nullptr;
  const sg_status submitted = submit(&handle);
  if (submitted != SG_STATUS_OK || !handle) return submitted;  // recorded into a graph: no job to wait for
  const sg_status outcome = sg_job_wait(handle, SG_FOREVER, nullptr);
  sg_job_release(handle);
  return outcome;
}

}  // namespace sg
