// SPDX-License-Identifier: Apache-2.0
// The simulated device, its streams and its events.
#pragma once

#include <streamgemm/backend.h>
#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "address_space.hpp"
#include "arithmetic.hpp"
#include "device_name.hpp"
#include "models.hpp"
#include "timeline.hpp"
#include "work_queue.hpp"

struct sg_backend_device {
 public:
  // Throws sg::sim::failure.
  sg_backend_device(const sg_backend_host *host, const char *name);

  const char *model_json() const noexcept { return models_.device.c_str(); }
  const char *machine_json() const noexcept { return models_.machine.empty() ? nullptr : models_.machine.c_str(); }
  sg::sim::address_space &memory() noexcept { return *memory_; }
  std::int32_t compute_units() const { return host_->compute_units(model_.get()); }
  // Seconds of a command; negative: unsupported by the model.
  double seconds_of(const sg_backend_command &command, bool both_ways = false) const;
  bool supports(const sg_backend_command &command) const;
  void count_allocation();  // throws at the planned fault
  void drain();

 private:
  friend sg_backend_stream;
  struct model_deleter {
    const sg_backend_host *host;
    void operator()(sg_backend_model *model) const { host->model_free(model); }
  };

  bool inherited() const noexcept;  // by a child of fork, which lacks the threads

  const sg_backend_host *host_;
  sg::sim::device_name name_;
  sg::sim::model_texts models_;
  std::unique_ptr<sg_backend_model, model_deleter> model_;
  std::unique_ptr<sg::sim::address_space> memory_;
  const pid_t process_;

  std::mutex mutex_;  // guards the members below, the faults in name_, and the device's events
  std::unique_ptr<sg::sim::timeline> timeline_;
  std::vector<std::shared_ptr<sg::sim::work_queue>> queues_;
  bool draining_ = false;
};

struct sg_backend_event {
  std::shared_ptr<sg::sim::work_queue> queue;  // empty: never recorded
  sg::sim::work_queue::ticket ticket = 0;
  std::int64_t time = 0;
};

struct sg_backend_stream {
 public:
  explicit sg_backend_stream(sg_backend_device &device);
  ~sg_backend_stream();
  sg_backend_stream(const sg_backend_stream &) = delete;
  sg_backend_stream &operator=(const sg_backend_stream &) = delete;

  sg_backend_device &device() noexcept { return device_; }
  void wait_for(const sg_backend_event &event);
  void record(sg_backend_event &event);
  void begin_at(std::int64_t time) noexcept;
  void enqueue(const sg_backend_command &command, sg_backend_done done);
  // GEMMs as one launch: they are refused, or fail, all together.
  void enqueue_batch(const sg_backend_command *const *gemms, std::int32_t count, sg_backend_done done);

 private:
  void copy(const sg_backend_copy &copy, sg_backend_done done);
  void gemm(const sg_backend_gemm &gemm, sg_backend_done done);
  void reduce(const sg_backend_reduce &reduce, sg_backend_done done);
  void marker(sg_backend_done done);
  struct located_gemm;
  located_gemm located(const sg_backend_gemm &gemm) const;
  void other(const sg_backend_command &command, sg_backend_done done);
  // `units`: occupied multiprocessors; 0: all; negative: none.
  void launch(const char *what, double seconds, std::int32_t units, std::function<void()> work, sg_backend_done done);

  sg_backend_device &device_;
  const std::shared_ptr<sg::sim::work_queue> queue_;
  std::int64_t ready_ = 0;  // earliest virtual start of the next command
};
