// SPDX-License-Identifier: Apache-2.0
// Where jobs are put in order and let go: what streams, events and graphs know of their context.
#pragma once

#include <cstddef>

#include "base/combining_mutex.hpp"
#include "run/job/job_home.hpp"
#include "run/order/tracker.hpp"

namespace sg {

class device_buffer;
struct graph_program;
class stream;

// The order of a submission.
struct submission {
  stream *on = nullptr;
  job *behind = nullptr;  // runs after this job, however that ends
  const ref<job> *after = nullptr;
  std::size_t after_count = 0;
  bool untracked = false;
  bool limited = false;  // the context's job limit holds for it
};

class job_sink : public job_home {
 public:
  // Puts a job in order and lets it go; the reference becomes the executor's. At the job limit it waits, or throws
  // sg::error(SG_STATUS_BUSY). Throws std::bad_alloc or sg::error(SG_STATUS_SHUTDOWN); the job then ends unseen. With a
  // stream of the caller's it returns once the job's command is in there, or once the job has ended where it is not one
  // command on the device.
  virtual void submit(ref<job> work, const submission &order, const access *accesses, std::size_t access_count) = 0;
  // The same with a graph's run: its parts in the order that they were recorded in, and `whole`, which ends after them.
  virtual void submit_parts(const ref<job> &whole, const submission &order, const graph_program &program) = 0;
  // Frees a buffer once every job submitted so far has ended: on the service's thread.
  virtual void free_when_unused(device_buffer &released) noexcept = 0;

  // What stands between submitting threads: the order of submissions. Completions enter it only to free memory.
  combining_mutex &submission_lock() noexcept { return submission_lock_; }

 protected:
  using job_home::job_home;
  combining_mutex submission_lock_;
};

}  // namespace sg
