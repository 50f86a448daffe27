// SPDX-License-Identifier: Apache-2.0
// Streams and events of a simulated device.
#pragma once

#include <streamgemm/backend.h>

#include <functional>
#include <memory>
#include <mutex>

#include "arithmetic.hpp"
#include "device.hpp"
#include "work_queue.hpp"

struct sg_backend_event {
  std::mutex mutex;                            // guards the others: a stream of another device may wait for the event
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
  void wait_for(sg_backend_event &event);
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
  // The bytes of one end of a copy, and the device that has them if it is another one.
  struct copy_end {
    std::byte *bytes = nullptr;
    const sg::sim::peer *of = nullptr;
  };
  copy_end end_of_copy(sg_backend_space space, const void *at, std::uint64_t bytes, const char *what) const;
  struct located_gemm;
  located_gemm located(const sg_backend_gemm &gemm) const;
  void other(const sg_backend_command &command, sg_backend_done done);
  // `units`: occupied multiprocessors; 0: all; negative: none.
  void launch(const char *what, double seconds, std::int32_t units, std::function<void()> work, sg_backend_done done);

  sg_backend_device &device_;
  const std::shared_ptr<sg::sim::work_queue> queue_;
  std::int64_t ready_ = 0;  // earliest virtual start of the next command
};
