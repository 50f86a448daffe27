// SPDX-License-Identifier: Apache-2.0
// Completed jobs that the application has not collected yet. Jobs are linked through their own records, so posting
// needs no memory.
#pragma once

#include <streamgemm/queue.h>

#include <cstdint>
#include <mutex>

#include "base/futex.hpp"
#include "base/object.hpp"
#include "run/job/job.hpp"

namespace sg {

class completion_queue final : public object {
 public:
  // Where a caller receives completions.
  struct receiver {
    sg_completion *first;
    std::uint64_t stride;  // bytes from one to the next
    std::int32_t capacity;
  };

  // `owner`: the context whose device a waiting thread polls; empty: none. `observes`: whether a collected completion
  // counts as observed by the application.
  completion_queue(ref<job_home> owner, sg_queue_jobs jobs, bool observes) noexcept;
  ~completion_queue() override;

  void post(ref<job> completed) noexcept;
  // SG_STATUS_OK with at least one, SG_STATUS_TIMEOUT, or SG_STATUS_CANCELLED when closed and empty.
  sg_status next_batch(const receiver &to, const deadline &until, std::int32_t &count) noexcept;
  void close() noexcept;
  int descriptor();  // Throws sg::error.

 private:
  void signal() noexcept;  // with the lock held
  void show_descriptor() noexcept;

  const ref<job_home> owner_;  // may be empty
  const sg_queue_jobs jobs_;
  const bool observes_;
  std::mutex lock_;
  job *first_ = nullptr, *last_ = nullptr;
  bool closed_ = false;
  int fd_ = -1;  // an eventfd, made on the first request
  bool fd_readable_ = false;
  std::atomic<std::uint32_t> changes_{0};  // a futex
  std::uint32_t sleepers_ = 0;
};

}  // namespace sg
