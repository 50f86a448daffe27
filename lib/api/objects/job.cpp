// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/job.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "api/entry.hpp"
#include "api/wait.hpp"
#include "run/job/job_completions.hpp"
#include "run/job/job_home.hpp"

namespace sg {
namespace {

ref<job> job_of(const sg_job *handle, const char *name = "job") {
  return object_of<job>(handle, object_type::job, name);
}

std::vector<ref<job>> jobs_of(sg_job *const *handles, std::int32_t count) {
  if (count > 0) require(handles, "jobs");
  std::vector<ref<job>> jobs;
  jobs.reserve(static_cast<std::size_t>(count));
  for (std::int32_t i = 0; i < count; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "jobs[%d]", i);
    jobs.push_back(job_of(handles[i], name));
  }
  return jobs;
}

void call_job_callback(handle_bits handle, sg_status status, void *user, void *fn) {
  reinterpret_cast<sg_job_callback>(fn)(handle_of<sg_job>(handle), status, user);
}

// A wait or a test of jobs. `observe` returns what became of the call; if that is SG_STATUS_OK it has stored the status
// of the job, which the caller gets in *out_status, or without it as the result.
template <class Observe>
sg_status observe_job(sg_status *out_status, Observe &&observe) noexcept {
  if (out_status) *out_status = SG_STATUS_NOT_READY;
  sg_status answer = SG_STATUS_OK, outcome = SG_STATUS_OK;
  const sg_status call = guarded([&] { answer = observe(outcome); });
  if (call != SG_STATUS_OK) return call;
  if (answer != SG_STATUS_OK || !out_status) return answer != SG_STATUS_OK ? answer : outcome;
  *out_status = outcome;
  return SG_STATUS_OK;
}

sg_status query(const sg_job *handle, sg_status *out_status) noexcept {
  return observe_job(out_status, [&](sg_status &outcome) {
    const auto job = job_of(handle);
    if (!job->done()) return SG_STATUS_NOT_READY;
    outcome = outcome_of(*job);
    return SG_STATUS_OK;
  });
}

sg_status get_statistics(const sg_job *handle, sg_job_statistics *out_statistics) noexcept {
  sg_status result = SG_STATUS_OK;
  const sg_status call = guarded([&] {
    const auto job = job_of(handle);
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    if (job->done())
      job->statistics(statistics);
    else
      result = SG_STATUS_NOT_READY;
    sg::write_out(out_statistics, statistics, "out_statistics");
  });
  return call == SG_STATUS_OK ? result : call;
}

}  // namespace
}  // namespace sg

using sg::guarded;
using sg::job_of;
using sg::object_type;
using sg::ref;

sg_status sg_job_retain(sg_job *job) { return sg::retain(job, object_type::job, "job"); }

sg_status sg_job_release(sg_job *job) { return sg::release(job, object_type::job, "job"); }

sg_status sg_job_wait(sg_job *handle, int64_t timeout_ns, sg_status *out_status) {
  return sg::observe_job(out_status, [&](sg_status &outcome) {
    const auto job = job_of(handle);
    const auto until = sg::deadline_of(timeout_ns);
    if (!sg::wait_for(*job, until)) return SG_STATUS_TIMEOUT;
    outcome = sg::outcome_of(*job);
    return SG_STATUS_OK;
  });
}

sg_status sg_job_query(sg_job *job, sg_status *out_status) { return sg::query(job, out_status); }

sg_status sg_job_cancel(sg_job *handle) {
  return guarded([&] {
    if (!job_of(handle)->request_cancel()) throw sg::error(SG_STATUS_BUSY, "the job had already completed");
  });
}

sg_status sg_job_on_complete(sg_job *handle, sg_job_callback callback, void *user) {
  return guarded([&] {
    const auto job = job_of(handle);
    sg::require(reinterpret_cast<void *>(callback), "callback");
    sg::request_callback(job, sg::bits_of(handle), object_type::job, sg::call_job_callback,
                         reinterpret_cast<void *>(callback), user);
  });
}

sg_status sg_job_message(sg_job *handle, char *text, uint64_t size, uint64_t *out_size) {
  sg_status result = SG_STATUS_OK;
  sg::clear_text(text, size, out_size);
  const sg_status call = guarded([&] {
    const auto job = job_of(handle);
    if (!job->done()) {
      if (size > 0) sg::require(text, "text");
      result = SG_STATUS_NOT_READY;
      return;
    }
    sg::write_text(job->message(), text, size, out_size);
    job->mark_observed();
  });
  return call == SG_STATUS_OK ? result : call;
}

sg_status sg_job_label(sg_job *handle, char *text, uint64_t size, uint64_t *out_size) {
  sg::clear_text(text, size, out_size);
  return guarded([&] { sg::write_text(job_of(handle)->label(), text, size, out_size); });
}

sg_status sg_job_progress(sg_job *handle, double *out_fraction) {
  if (out_fraction) *out_fraction = 0;
  return guarded([&] {
    const auto job = job_of(handle);
    sg::require(out_fraction, "out_fraction");
    *out_fraction = job->progress();
  });
}

sg_status sg_job_get_statistics(sg_job *job, sg_job_statistics *out_statistics) {
  return sg::get_statistics(job, out_statistics);
}

sg_status sg_job_wait_all(sg_job *const *handles, int32_t count, int64_t timeout_ns, sg_status *out_status) {
  return sg::observe_job(out_status, [&](sg_status &outcome) {
    sg::require_range(count, 0, INT32_MAX, "count");
    const auto jobs = sg::jobs_of(handles, count);
    const sg::deadline until = sg::deadline_of(timeout_ns);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (i + 4 < jobs.size()) jobs[i + 4]->fetch();  // another core has completed it, or will
      if (!sg::wait_for(*jobs[i], until)) return SG_STATUS_TIMEOUT;
    }
    const auto failed =
        std::find_if(jobs.begin(), jobs.end(), [](const auto &job) { return job->status() != SG_STATUS_OK; });
    if (failed != jobs.end()) outcome = sg::outcome_of(**failed);
    return SG_STATUS_OK;
  });
}

sg_status sg_job_wait_any(sg_job *const *handles, int32_t count, int64_t timeout_ns, int32_t *out_index,
                          sg_status *out_status) {
  if (out_index) *out_index = -1;
  return sg::observe_job(out_status, [&](sg_status &outcome) {
    sg::require(out_index, "out_index");
    sg::require_range(count, 1, INT32_MAX, "count");
    const auto jobs = sg::jobs_of(handles, count);
    const sg::deadline until = sg::deadline_of(timeout_ns);
    if (!until.passed() && std::none_of(jobs.begin(), jobs.end(), [](const auto &job) { return job->done(); }))
      sg::require_may_wait();
    const sg::job_completions completions;
    jobs.front()->owner().poll_until(
        [&] {
          return until.passed() || std::any_of(jobs.begin(), jobs.end(), [](const auto &job) { return job->done(); });
        },
        sg::job_home::short_poll_ns);
    for (;;) {
      const std::uint32_t seen = completions.count();
      for (std::size_t i = 0; i < jobs.size(); ++i) {
        if (!jobs[i]->done()) continue;
        jobs[i]->wait(until);  // returns at once; records that the host has observed the completion
        *out_index = static_cast<int32_t>(i);
        outcome = sg::outcome_of(*jobs[i]);
        return SG_STATUS_OK;
      }
      if (until.passed()) return SG_STATUS_TIMEOUT;
      completions.wait(seen, until);
    }
  });
}
