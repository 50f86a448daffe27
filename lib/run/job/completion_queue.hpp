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
  // `owner`: the context whose device a waiting thread polls; empty: none.
  explicit completion_queue(ref<job_home> owner) noexcept;
  ~completion_queue() override;

  void post(ref<job> completed) noexcept;
  // SG_STATUS_OK with at least one, SG_STATUS_TIMEOUT, or SG_STATUS_CANCELLED when closed and empty.
  sg_status next_batch(sg_completion *out, std::int32_t capacity, const deadline &until, std::int32_t &count) noexcept;
  // Whether a collected completion counts as observed by the application.
  void set_observing(bool observes) noexcept { observes_.store(observes, std::memory_order_relaxed); }
  void close() noexcept;
  int descriptor();  // Throws sg::error.

 private:
  void signal() noexcept;  // with the lock held
  void show_descriptor() noexcept;

  const ref<job_home> owner_;  // may be empty
  std::mutex lock_;
  job *first_ = nullptr, *last_ = nullptr;
  std::atomic<bool> observes_{true};
  bool closed_ = false;
  int fd_ = -1;  // an eventfd, made on the first request
  bool fd_readable_ = false;
  std::atomic<std::uint32_t> changes_{0};  // a futex
  std::uint32_t sleepers_ = 0;
};

}  // namespace sg
