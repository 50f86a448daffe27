// SPDX-License-Identifier: Apache-2.0
// Shared by the conformance tests: a device under test, owners of its memory and streams, and a listener for
// completions.
#pragma once

#include <gtest/gtest.h>
#include <streamgemm/backend.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../support/sweep.hpp"
#include "devices/device.hpp"
#include "ops/backend_commands.hpp"

namespace sg::test {

// Names of the devices to test: SG_TEST_DEVICES, separated by commas; otherwise "cpu,sim:h200".
std::vector<std::string> devices_under_test();

class conformance : public testing::TestWithParam<std::string> {
 protected:
  conformance() : device_(open_device(GetParam().c_str())) {}

  const sg_backend_ops &ops() const { return device_->ops(); }
  sg_backend_device *handle() const { return device_->handle(); }
  bool unified() const { return device_->unified(); }
  const std::shared_ptr<device> &dev() const { return device_; }

 private:
  std::shared_ptr<device> device_;
};

// Instantiates a suite for every device under test.
std::string printable(const testing::TestParamInfo<std::string> &info);
#define SG_CONFORMANCE(suite) \
  INSTANTIATE_TEST_SUITE_P(Devices, suite, testing::ValuesIn(sg::test::devices_under_test()), sg::test::printable)

// Receives the completions of any number of commands.
class listener {
 public:
  sg_backend_done done() {
    return {[](void *self, const sg_backend_result *r) { static_cast<listener *>(self)->hear(*r); }, this};
  }

  // Waits for `count` completions; false after minutes.
  bool wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    return heard_.wait_for(lock, std::chrono::minutes(10), [&] { return results_.size() >= count; });
  }

  struct outcome {
    sg_status status;
    std::string message;
    std::int64_t start_ns, end_ns;
    std::thread::id thread;
  };
  std::vector<outcome> results() {
    const std::lock_guard lock(mutex_);
    return results_;
  }

 private:
  void hear(const sg_backend_result &r) {
    const std::lock_guard lock(mutex_);
    results_.push_back(
        {r.status, r.message == nullptr ? "" : r.message, r.start_ns, r.end_ns, std::this_thread::get_id()});
    heard_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable heard_;
  std::vector<outcome> results_;
};

// A stream; waits for its commands before it is destroyed.
class stream {
 public:
  explicit stream(std::shared_ptr<device> of, std::int32_t priority = 0)
      : device_(std::move(of)), handle_(device_->stream_create(priority)) {}
  ~stream() {
    finish();
    device_->ops().stream_destroy(handle_);
  }
  stream(const stream &) = delete;
  stream &operator=(const stream &) = delete;

  sg_backend_stream *handle() const { return handle_; }

  // Waits for the commands in the stream; the status of the last completion.
  sg_status finish() {
    listener end;
    if (device_->enqueue(handle_, marker_command, end.done()) != SG_STATUS_OK) return SG_STATUS_SHUTDOWN;
    EXPECT_TRUE(end.wait(1));
    return end.results().at(0).status;
  }

 private:
  std::shared_ptr<device> device_;
  sg_backend_stream *handle_;
};

// One command; its header is set here.
template <class Command>
sg_status enqueue(const device &on, stream &in, Command what, sg_backend_done done) {
  what.header = backend_command<Command>().header;
  return on.enqueue(in.handle(), what.header, done);
}
// Runs one command to its completion, which succeeds.
template <class Command>
void complete(const device &on, stream &in, const Command &what) {
  listener end;
  ASSERT_EQ(SG_STATUS_OK, enqueue(on, in, what, end.done())) << on.ops().last_message(on.handle());
  ASSERT_TRUE(end.wait(1));
  ASSERT_EQ(SG_STATUS_OK, end.results().at(0).status) << end.results().at(0).message;
}
inline sg_status enqueue_marker(const device &on, stream &in, sg_backend_done done) {
  return on.enqueue(in.handle(), marker_command, done);
}

// Whether the device's GEMMs may have a bias and an activation.
inline bool has_epilogues(const device &on) {
  auto gemm = backend_command<sg_backend_gemm>();
  gemm.m = gemm.n = gemm.k = gemm.batch = gemm.lda = gemm.ldb = gemm.ldc = 1;
  gemm.in_type = gemm.out_type = SG_DTYPE_F32;
  gemm.alpha = {1, 0};
  gemm.bias = &gemm;
  gemm.activation = SG_ACTIVATION_RELU;
  return on.supports(gemm.header);
}

// A copy of one run of bytes.
inline sg_backend_copy run_of_bytes(void *dst, const void *src, std::int64_t bytes, sg_memory_kind to,
                                    sg_memory_kind from) {
  return {{}, dst, src, bytes, bytes, bytes, 1, {to, 0}, {from, 0}};
}

class event {
 public:
  explicit event(std::shared_ptr<device> of) : device_(std::move(of)), handle_(device_->event_create()) {}
  ~event() { device_->ops().event_destroy(handle_); }
  event(const event &) = delete;
  event &operator=(const event &) = delete;
  sg_backend_event *handle() const { return handle_; }

 private:
  std::shared_ptr<device> device_;
  sg_backend_event *handle_;
};

// Device memory with an image on the host, moved by the device's own copies.
class memory {
 public:
  memory(std::shared_ptr<device> of, std::int64_t bytes)
      : device_(std::move(of)), bytes_(bytes), data_(device_->mem_alloc(static_cast<std::uint64_t>(bytes))) {}
  ~memory() { device_->ops().mem_free(device_->handle(), data_); }
  memory(const memory &) = delete;
  memory &operator=(const memory &) = delete;

  char *data() const { return static_cast<char *>(data_); }
  void write(stream &in, const void *from) { move(in, data_, from, SG_MEMORY_DEVICE, SG_MEMORY_PAGEABLE); }
  void read(stream &in, void *to) { move(in, to, data_, SG_MEMORY_PAGEABLE, SG_MEMORY_DEVICE); }

 private:
  void move(stream &in, void *dst, const void *src, sg_memory_kind to, sg_memory_kind from) {
    if (bytes_ == 0) return;
    complete(*device_, in, run_of_bytes(dst, src, bytes_, to, from));
  }

  std::shared_ptr<device> device_;
  std::int64_t bytes_;
  void *data_;
};

}  // namespace sg::test
