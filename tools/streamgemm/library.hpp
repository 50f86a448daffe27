// SPDX-License-Identifier: Apache-2.0
// The library's C interface as this program uses it: handles that release themselves, statuses that throw.
#pragma once

#include <streamgemm/streamgemm.h>

#include <filesystem>
#include <memory>
#include <string>

#include "outcome.hpp"

namespace sg::cli {

template <auto Release>
struct releaser {
  template <class T>
  void operator()(T *handle) const noexcept {
    Release(handle);
  }
};

using context_handle = std::unique_ptr<sg_context, releaser<sg_context_release>>;
using job_handle = std::unique_ptr<sg_job, releaser<sg_job_release>>;
using plan_handle = std::unique_ptr<sg_plan, releaser<sg_plan_release>>;
using event_handle = std::unique_ptr<sg_event, releaser<sg_event_release>>;
using queue_handle = std::unique_ptr<sg_queue, releaser<sg_queue_release>>;
using stream_handle = std::unique_ptr<sg_stream, releaser<sg_stream_release>>;
using trace_handle = std::unique_ptr<sg_trace, releaser<sg_trace_release>>;
using buffer_handle = std::unique_ptr<sg_buffer, releaser<sg_buffer_release>>;

// Throws the exception for a failed status; `attempt` names the operation.
void check(sg_status status, const std::string &attempt);

// The folder of libstreamgemm.so.
std::filesystem::path library_folder();

struct context_request {
  std::string device = "auto";
  int compute_lanes = 0;
  std::uint64_t memory_limit = 0;
  std::uint32_t flags = SG_CONTEXT_DEFAULT;
};

context_handle open_context(const context_request &request);
sg_device_info device_of(sg_context *context);
sg_job_statistics statistics_of(sg_job *job);
std::string describe(sg_plan *plan, sg_plan_format format);
std::string model_of(sg_context *context);  // JSON, docs/device-model.md

}  // namespace sg::cli
