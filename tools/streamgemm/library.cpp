// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <dlfcn.h>

#include <vector>

namespace sg::cli {

static exit_code exit_code_of(sg_status status) {
  switch (status) {
    case SG_STATUS_INVALID_ARGUMENT:
    case SG_STATUS_UNSUPPORTED: return exit_code::usage;
    case SG_STATUS_NO_DEVICE: return exit_code::no_device;
    default: return exit_code::failed;
  }
}

void check(sg_status status, const std::string &attempt) {
  if (status == SG_STATUS_OK) return;
  const std::string text = sg_last_error_message();
  throw failure(exit_code_of(status), attempt + ": " + (text.empty() ? sg_status_name(status) : text));
}

std::filesystem::path library_folder() {
  Dl_info library;
  if (dladdr(reinterpret_cast<const void *>(&sg_version), &library) == 0)
    throw failure(exit_code::failed, "the library's own path is unknown");
  return std::filesystem::absolute(library.dli_fname).parent_path();
}

context_handle open_context(const context_request &request) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = request.device.c_str();
  options.compute_lanes = request.compute_lanes;
  options.memory_limit = request.memory_limit;
  options.flags = request.flags;
  sg_context *context = nullptr;
  check(sg_context_create(&options, &context), "device " + request.device);
  return context_handle(context);
}

sg_device_info device_of(sg_context *context) {
  sg_device_info info = SG_DEVICE_INFO_INIT;
  check(sg_context_get_device_info(context, 0, &info), "device information");
  return info;
}

sg_job_statistics statistics_of(sg_job *job) {
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  check(sg_job_get_statistics(job, &statistics), "job statistics");
  return statistics;
}

std::string describe(sg_plan *plan, sg_plan_format format) {
  std::uint64_t size = 0;
  check(sg_plan_describe(plan, format, nullptr, 0, &size), "plan description");
  std::vector<char> text(size);
  check(sg_plan_describe(plan, format, text.data(), size, nullptr), "plan description");
  return text.data();
}

std::string model_of(sg_context *context) {
  std::uint64_t size = 0;
  check(sg_context_model(context, nullptr, 0, &size), "device model");
  std::vector<char> text(size);
  check(sg_context_model(context, text.data(), size, nullptr), "device model");
  return text.data();
}

}  // namespace sg::cli
