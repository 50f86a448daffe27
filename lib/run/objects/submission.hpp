// SPDX-License-Identifier: Apache-2.0
// A recorded submission: a program, the binding of its operands, the memory accesses and the options. A submission that
// is not recorded has no object: its job gets the four directly, see job_sink::submit.
#pragma once

#include <streamgemm/backend.h>
#include <streamgemm/graph.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/object.hpp"
#include "ops/binding.hpp"
#include "plan/form/form.hpp"
#include "run/job/job.hpp"
#include "run/job/user_release.hpp"
#include "run/objects/stream.hpp"
#include "run/order/tracker.hpp"
#include "run/program/program.hpp"

namespace sg {

struct submission {
  // The work, shared with the program cache and immutable; nullptr: none, it is a marker. A program refers to no
  // submission.
  std::shared_ptr<const sg::program> program;

  binding operands;
  std::vector<access> accesses;

  // Options.
  std::int8_t priority = 0;
  bool follows_on_device = false;
  bool tracked = true;
  std::int32_t units = 0;            // limit of compute units; 0: none
  std::int64_t stream = -1;          // its number; -1: none
  device_index device{};             // whose engine takes it, if it is a marker; other work is its program's device's
  ref<sg::stream> partition_stream;  // its stream, if that has reserved compute units; a stream refers to no graph
  std::string label;
  std::uint64_t trace_id = 0;          // 0: that of the run
  std::shared_ptr<user_release> kept;  // what its function uses

  // Kept by updates: the operation, and a form of what is fixed.
  sg_operation operation = SG_OPERATION_MARKER;
  std::shared_ptr<const form> fixed;
  plan_request request;
};

}  // namespace sg
