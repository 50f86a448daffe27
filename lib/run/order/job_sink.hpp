// SPDX-License-Identifier: Apache-2.0
// Ordering and submission of jobs: the interface of a context for streams, events and graphs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/combining_mutex.hpp"
#include "base/device_index.hpp"
#include "run/job/job_home.hpp"
#include "run/order/tracker.hpp"

namespace sg {

class device_buffer;
class stream;
class submission_list;

// The order of a submission.
struct submission_order {
  stream *on = nullptr;
  job *behind = nullptr;  // runs after this job, whether or not it succeeds
  // Of a run with children: it completes after this job, whether or not that succeeds; its children may run before.
  job *completes_behind = nullptr;
  const ref<job> *after = nullptr;
  std::size_t after_count = 0;
  bool untracked = false;
  bool limited = false;  // counts against the context's job limit
};

// One of several runs that are submitted together.
struct child_run {
  ref<job> run;
  job *completes_behind = nullptr;  // whether or not that succeeds
  std::int32_t number = 0;          // among the runs, for messages
};

class job_sink : public job_home {
 public:
  // Orders a job and submits it; the reference becomes the executor's. At the job limit it blocks, or throws
  // sg::error(SG_STATUS_BUSY). Throws std::bad_alloc or sg::error(SG_STATUS_SHUTDOWN); the job then completes as a
  // marker. With a native stream it returns once the job's command is in that stream, or, if the job is not one command
  // on the device, once the job has completed.
  virtual void submit(ref<job> work, const submission_order &order, const access *accesses,
                      std::size_t access_count) = 0;
  // Submits a run: the children in recording order, and `parent`, which completes after them. Of several runs in one
  // list, each completes after its children, and `parent` after the runs.
  virtual void submit_children(const ref<job> &parent, const submission_order &order, const submission_list &recorded,
                               std::span<const child_run> runs = {}) = 0;
  // Frees a buffer on the service thread once every job submitted so far has completed.
  virtual void free_when_unused(device_buffer &released) noexcept = 0;

  virtual bool has_released_buffers() const noexcept = 0;  // that are not freed yet

  // The work of a marker that a lane runs.
  const std::shared_ptr<const program> lane_marker = program::of_command(ops::marker(), "nothing to do");

  // Serializes the order of submissions. Completions take it only to free memory.
  combining_mutex &submission_lock() noexcept { return submission_lock_; }

 protected:
  using job_home::job_home;
  combining_mutex submission_lock_;
};

}  // namespace sg
