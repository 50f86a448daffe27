// SPDX-License-Identifier: Apache-2.0
// A simulated device for tests, used through its table alone.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <streamgemm/backend.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/sim/sim_backend.hpp"
#include "devices/device.hpp"
#include "ops/backend_commands.hpp"

namespace sg::test {

inline const sg_backend_ops &ops = *sg_sim_backend();

struct outcome {
  sg_status status = SG_STATUS_INTERNAL;
  std::string message;
  std::int64_t start_ns = 0, end_ns = 0;
};

// Receives the result of one command.
class completion {
 public:
  sg_backend_done done() { return {&completion::tell, this}; }

  outcome wait() {
    std::unique_lock lock(mutex_);
    told_.wait(lock, [&] { return times_ > 0; });
    return outcome_;
  }
  int times() {
    std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  static void tell(void *user, const sg_backend_result *result) {
    auto *self = static_cast<completion *>(user);
    std::lock_guard lock(self->mutex_);
    self->outcome_ = {result->status, result->message ? result->message : "", result->start_ns, result->end_ns};
    ++self->times_;
    self->told_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable told_;
  outcome outcome_;
  int times_ = 0;
};

// A file that is removed after the test.
class temporary_file {
 public:
  explicit temporary_file(const std::string &text) {
    const int descriptor = mkstemps(path_.data(), 5);
    if (descriptor < 0) throw std::runtime_error("no temporary file");
    close(descriptor);
    std::ofstream(path_) << text;
  }
  ~temporary_file() { unlink(path_.c_str()); }
  temporary_file(const temporary_file &) = delete;
  temporary_file &operator=(const temporary_file &) = delete;
  const std::string &path() const { return path_; }

 private:
  std::string path_ = "/tmp/sg-model-XXXXXX.json";
};

// A device with only these costs, in units of a millisecond: a copy of unit_bytes either way, and an f32 GEMM of
// unit_size cubed. With `slow_both_ways` each direction is half as fast while the other is busy.
inline constexpr std::int64_t unit_ns = 1'000'000;
inline constexpr std::int64_t unit_size = 100;
inline constexpr std::int64_t unit_bytes = unit_size * unit_size * 4;

inline std::string unit_model(int copy_engines = 2, bool slow_both_ways = false) {
  const std::string rate = std::to_string(unit_bytes * 1000),
                    both = slow_both_ways ? std::to_string(unit_bytes * 500) : rate;
  return R"({"name": "unit", "unified_memory": false, "lanes_are_cores": false, "memory_bytes": 1000000000,
    "compute_lanes": 4, "lane_depth_commands": 4, "copy_engines": )" +
         std::to_string(copy_engines) + R"(,
    "staging_workers": 1, "staging": [{"workers": 1, "bytes_per_second": 1e9}],
    "link": {"in_bytes_per_second": )" +
         rate + R"(, "out_bytes_per_second": )" + rate + R"(,
      "both_ways_in_bytes_per_second": )" +
         both + R"(, "both_ways_out_bytes_per_second": )" + both + R"(,
      "pageable_in_bytes_per_second": 1e9, "pageable_out_bytes_per_second": 1e9,
      "copy_latency_seconds": 0, "copy_gap_seconds": 0, "runs": []},
    "kernels": {"launch_latency_seconds": 0, "launch_gap_seconds": 0, "units": 1, "tile_m_elements": 1,
      "tile_n_elements": 1, "split_k_elements": 0, "memory_bytes_per_second": 1e18,
      "gemm": [{"dtype": "f32", "compute": "exact", "flops_per_second": 2e9}]}})";
}

class sim_device {
 public:
  explicit sim_device(const std::string &name) {
    char message[SG_BACKEND_MESSAGE_SIZE] = "";
    status_ = ops().device_open(host_services(), name.c_str(), &handle_, message);
    message_ = message;
  }
  ~sim_device() {
    if (handle_) ops().device_close(handle_);
  }
  sim_device(const sim_device &) = delete;
  sim_device &operator=(const sim_device &) = delete;

  static const sg_backend_ops &ops() { return *sg_sim_backend(); }
  bool is_open() const { return handle_ != nullptr; }
  sg_backend_device *handle() const {
    if (!handle_) throw std::runtime_error("no device: " + message_);
    return handle_;
  }
  sg_status status() const { return status_; }
  const std::string &open_message() const { return message_; }
  std::string last_message() const { return ops().last_message(handle_); }

 private:
  sg_status status_;
  std::string message_;
  sg_backend_device *handle_ = nullptr;
};

// One command.
inline sg_status enqueue(sg_backend_stream *in, const sg_backend_command &what, sg_backend_done done) {
  const sg_backend_command *const one = &what;
  return sg_sim_backend()->enqueue(in, &one, 1, nullptr, done);
}

class sim_stream {
 public:
  explicit sim_stream(sim_device &device) {
    if (device.ops().stream_create(device.handle(), 0, &handle_) != SG_STATUS_OK) throw std::runtime_error("no stream");
  }
  ~sim_stream() {
    completion end;  // a stream is destroyed only when nothing is in flight
    if (enqueue(marker_command, end.done()) == SG_STATUS_OK) end.wait();
    ops().stream_destroy(handle_);
  }
  sim_stream(const sim_stream &) = delete;
  sim_stream &operator=(const sim_stream &) = delete;

  static const sg_backend_ops &ops() { return *sg_sim_backend(); }
  sg_backend_stream *handle() const { return handle_; }
  sg_status enqueue(const sg_backend_command &what, sg_backend_done done) const {
    return test::enqueue(handle_, what, done);
  }

 private:
  sg_backend_stream *handle_ = nullptr;
};

// Device memory that is released.
class sim_memory {
 public:
  sim_memory(sim_device &device, std::uint64_t bytes) : device_(device) {
    if (device.ops().mem_alloc(device.handle(), bytes, &at_) != SG_STATUS_OK)
      throw std::runtime_error(device.last_message());
  }
  ~sim_memory() { device_.ops().mem_free(device_.handle(), at_); }
  sim_memory(const sim_memory &) = delete;
  sim_memory &operator=(const sim_memory &) = delete;
  void *get() const { return at_; }
  void *at(std::int64_t offset) const { return static_cast<char *>(at_) + offset; }

 private:
  sim_device &device_;
  void *at_ = nullptr;
};

inline sg_backend_copy copy_in(void *device, const void *host, std::int64_t bytes) {
  return {backend_command<sg_backend_copy>().header,
          device,
          host,
          bytes,
          bytes,
          bytes,
          1,
          {SG_MEMORY_DEVICE, 0},
          {SG_MEMORY_PAGEABLE, 0}};
}
inline sg_backend_copy copy_out(void *host, const void *device, std::int64_t bytes) {
  return {backend_command<sg_backend_copy>().header,
          host,
          device,
          bytes,
          bytes,
          bytes,
          1,
          {SG_MEMORY_PAGEABLE, 0},
          {SG_MEMORY_DEVICE, 0}};
}

// Square, tight, C = A * B.
inline sg_backend_gemm square_gemm(std::int64_t size, const void *a, const void *b, void *c,
                                   sg_dtype type = SG_DTYPE_F32) {
  auto gemm = backend_command<sg_backend_gemm>();
  gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = size;
  gemm.batch = 1;
  gemm.in_type = gemm.out_type = type;
  gemm.alpha = {1, 0};
  gemm.a = a;
  gemm.b = b;
  gemm.c = c;
  return gemm;
}

// Runs one command and returns its outcome, or the status with which it was refused.
template <class Enqueue>
outcome run(sim_device &device, Enqueue &&enqueue) {
  completion end;
  const sg_status accepted = enqueue(end.done());
  return accepted == SG_STATUS_OK ? end.wait() : outcome{accepted, device.last_message(), 0, 0};
}
inline outcome run_copy(sim_device &device, sim_stream &stream, sg_backend_copy copy) {
  return run(device, [&](sg_backend_done done) { return stream.enqueue(copy.header, done); });
}
inline outcome run_gemm(sim_device &device, sim_stream &stream, sg_backend_gemm gemm) {
  return run(device, [&](sg_backend_done done) { return stream.enqueue(gemm.header, done); });
}

inline void expect_text(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" does not say \"" << part << "\"";
}

}  // namespace sg::test
