// SPDX-License-Identifier: Apache-2.0
// The one device of the cpu backend: its streams and its device model.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <mutex>

#include "backends/cpu/worker/callers.hpp"
#include "shared_call.hpp"
#include "stream.hpp"

namespace sg::cpu {

class device {
 public:
  device() noexcept;
  device(const device &) = delete;
  device &operator=(const device &) = delete;

  const char *model() const noexcept { return model_; }

  sg_status create_stream(std::int32_t priority, stream **out) noexcept;
  void destroy_stream(stream *which) noexcept;
  std::int32_t streams() const noexcept { return count_.load(std::memory_order_relaxed); }
  awake_cores &awake() noexcept { return awake_; }
  shared_calls &calls() noexcept { return calls_; }

  // Called by a worker that starts, or stops, polling for another call to help with.
  void polls() noexcept { polling_.fetch_add(1, std::memory_order_seq_cst); }
  void polls_no_longer() noexcept { polling_.fetch_sub(1, std::memory_order_seq_cst); }

  // Runs on the calling thread: a command, or a batch, with the help of idle workers; or the next command of a stream,
  // see sg_backend_ops.
  sg_status run_here(const sg_backend_command *const *commands, std::int32_t count, std::int64_t *out_busy_ns) noexcept;
  bool run_waiting(int32_t (*wanted)(const sg_backend_done *done, void *user), void *user) noexcept;

  // Long commands poll this between their parts; nullptr: they run to completion.
  void stop_when(int32_t (*stopped)(const sg_backend_done *done)) noexcept { stopped_ = stopped; }
  auto stopped() const noexcept { return stopped_; }

  bool draining() const noexcept { return draining_.load(std::memory_order_seq_cst); }
  // Lets running commands complete, those of callers too, and drops the others; returns when none runs. Later commands
  // are refused. In a child of fork, which has no workers, it does nothing.
  void drain() noexcept;

 private:
  sg_status run(const operation &known, const sg_backend_command *const *commands, std::int32_t count, workspace &space,
                std::int64_t *out_busy_ns) noexcept;
  void wake_helpers(std::int32_t wanted) noexcept;

  std::atomic<bool> draining_{false};
  std::mutex mutex_;  // of the list
  struct listed_stream {
    stream *value;
    listed_stream *next;
  };
  listed_stream *streams_ = nullptr;
  std::atomic<std::int32_t> count_{0};  // streams
  awake_cores awake_;
  workspace_pool workspaces_;
  int32_t (*stopped_)(const sg_backend_done *done) = nullptr;
  std::atomic<std::int32_t> callers_{0};  // in run_here()
  std::atomic<std::int32_t> polling_{0};  // workers
  shared_calls calls_;
  const std::int32_t cores_;
  const pid_t process_;
  char model_[2048];
};

}  // namespace sg::cpu
