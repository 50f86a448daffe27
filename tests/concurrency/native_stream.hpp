// SPDX-License-Identifier: Apache-2.0
// Caller streams and events, on the backend of ordered_backend.cpp.
#pragma once

#include <dlfcn.h>
#include <streamgemm/backend.h>

#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/harness.hpp"

namespace sg_test {

// Square matrices of one size.
using matrix = std::vector<double>;
constexpr std::int64_t n = 8;
inline matrix all(double value) { return matrix(static_cast<std::size_t>(n * n), value); }

// GEMMs with twice the unit matrix.
class doubling {
 public:
  doubling() {
    for (std::int64_t i = 0; i < n; ++i) two_[static_cast<std::size_t>(i * n + i)] = 2;
  }
  // to = 2 * from
  sg_gemm_desc desc(matrix &to, const matrix &from) const {
    return make_gemm(two_.data(), from.data(), to.data(), n, n, n);
  }
  job submit(sg_context *context, matrix &to, const matrix &from, const sg_submit *options) const {
    const sg_gemm_desc wanted = desc(to, from);
    job made;
    EXPECT_OK(sg_gemm_async(context, &wanted, options, made.out()));
    return made;
  }

 private:
  matrix two_ = all(0);
};

// The backend's table and one of its devices, as seen by a program that uses the device itself.
class native_device {
 public:
  native_device() {
    const char *path = std::getenv("SG_PLUGIN_PATH");
    void *plugin = path ? dlopen(path, RTLD_NOW) : nullptr;
    if (!plugin) throw std::runtime_error("SG_PLUGIN_PATH does not name the plugin of ordered_backend.cpp");
    const auto entry = reinterpret_cast<sg_backend_entry_fn>(dlsym(plugin, SG_BACKEND_ENTRY_SYMBOL));
    ops_ = entry();
    char message[SG_BACKEND_MESSAGE_SIZE];
    EXPECT_EQ(SG_STATUS_OK, ops_->device_open(nullptr, "", &device_, message));
  }
  ~native_device() { ops_->device_close(device_); }
  native_device(const native_device &) = delete;
  native_device &operator=(const native_device &) = delete;

 protected:
  sg_status enqueue(sg_backend_stream *in, const sg_backend_command &what, sg_backend_done done) const {
    const sg_backend_command *const one = &what;
    return ops_->enqueue(in, &one, 1, nullptr, done);
  }

  static constexpr sg_backend_command marker_command{sizeof(sg_backend_command), SG_BACKEND_MARKER};
  const sg_backend_ops *ops_ = nullptr;
  sg_backend_device *device_ = nullptr;
};

// A native stream, which the test may block.
class native_stream : native_device {
 public:
  native_stream() { EXPECT_EQ(SG_STATUS_OK, ops_->stream_create(device_, 0, &stream_)); }
  ~native_stream() {
    release();
    finish();
    ops_->stream_destroy(stream_);
  }
  native_stream(const native_stream &) = delete;
  native_stream &operator=(const native_stream &) = delete;

  void *get() const { return stream_; }

  // Commands enqueued from now on do not run before release().
  void hold() {
    {
      const std::lock_guard lock(lock_);
      held_ = true;
    }
    EXPECT_EQ(SG_STATUS_OK, enqueue(stream_, marker_command, {wait_for_release, this}));
    // The first marker completes before its completion is notified; the second one stays pending.
    EXPECT_EQ(SG_STATUS_OK, enqueue(stream_, marker_command, {nullptr, nullptr}));
  }
  void release() {
    const std::lock_guard lock(lock_);
    held_ = false;
    changed_.notify_all();
  }
  void copy(matrix &to, const matrix &from) {
    sg_backend_copy what{};
    what.header = {sizeof what, SG_BACKEND_COPY};
    what.dst = to.data();
    what.src = from.data();
    what.width = what.dst_pitch = what.src_pitch = static_cast<std::int64_t>(from.size() * sizeof(double));
    what.height = 1;
    EXPECT_EQ(SG_STATUS_OK, enqueue(stream_, what.header, {nullptr, nullptr}));
  }
  void record(void *event) {
    EXPECT_EQ(SG_STATUS_OK, ops_->event_record(static_cast<sg_backend_event *>(event), stream_));
  }
  void wait(void *event) {
    EXPECT_EQ(SG_STATUS_OK, ops_->stream_wait(stream_, static_cast<sg_backend_event *>(event)));
  }
  void finish() {
    {
      const std::lock_guard lock(lock_);
      finished_ = false;
    }
    EXPECT_EQ(SG_STATUS_OK, enqueue(stream_, marker_command, {note_finish, this}));
    std::unique_lock lock(lock_);
    changed_.wait(lock, [&] { return finished_; });
  }

 private:
  static void wait_for_release(void *self, const sg_backend_result *) {
    auto &stream = *static_cast<native_stream *>(self);
    std::unique_lock lock(stream.lock_);
    stream.changed_.wait(lock, [&] { return !stream.held_; });
  }
  static void note_finish(void *self, const sg_backend_result *) {
    auto &stream = *static_cast<native_stream *>(self);
    const std::lock_guard lock(stream.lock_);
    stream.finished_ = true;
    stream.changed_.notify_all();
  }

  sg_backend_stream *stream_ = nullptr;
  std::mutex lock_;
  std::condition_variable changed_;
  bool held_ = false, finished_ = false;
};

class native_event : native_device {
 public:
  native_event() { EXPECT_EQ(SG_STATUS_OK, ops_->event_create(device_, &event_)); }
  ~native_event() { ops_->event_destroy(event_); }

  void *get() const { return event_; }
  sg_status query() const { return ops_->event_query(event_); }

 private:
  sg_backend_event *event_ = nullptr;
};

}  // namespace sg_test
