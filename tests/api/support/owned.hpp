// SPDX-License-Identifier: Apache-2.0
// Handles that release their reference.
#pragma once

#include <streamgemm/streamgemm.h>

#include <utility>

namespace sg_test {

// Owns one reference.
template <class T, sg_status (*Release)(T *)>
class owned {
 public:
  owned() = default;
  explicit owned(T *handle) : handle_(handle) {}
  owned(owned &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  owned &operator=(owned &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~owned() { Release(handle_); }
  T *get() const noexcept { return handle_; }
  operator T *() const noexcept { return handle_; }
  // For an output argument; releases the owned handle first.
  T **out() {
    reset();
    return &handle_;
  }
  sg_status reset() { return Release(std::exchange(handle_, nullptr)); }
  T *give_up() { return std::exchange(handle_, nullptr); }

 private:
  T *handle_ = nullptr;
};

using context = owned<sg_context, sg_context_release>;
using stream = owned<sg_stream, sg_stream_release>;
using event = owned<sg_event, sg_event_release>;
using buffer = owned<sg_buffer, sg_buffer_release>;
using job = owned<sg_job, sg_job_release>;
using queue = owned<sg_queue, sg_queue_release>;
using plan = owned<sg_plan, sg_plan_release>;
using trace = owned<sg_trace, sg_trace_release>;

}  // namespace sg_test
