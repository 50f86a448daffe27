// SPDX-License-Identifier: Apache-2.0
// What a graph's runs do: the recorded submissions, worked out once. It does not change; a graph that changes gets
// another.
#pragma once

#include <streamgemm/graph.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/device.hpp"
#include "ops/binding.hpp"
#include "plan/gemm/problem.hpp"
#include "run/job/job.hpp"
#include "run/objects/stream.hpp"
#include "run/order/tracker.hpp"
#include "run/program/compiled_plan.hpp"
#include "run/program/device_graph.hpp"

namespace sg {

// One submission, recorded.
struct recorded_work {
  work_kind kind = work_kind::marker;  // marker: there is nothing to do
  std::int8_t priority = 0;
  bool follows_on_device = false;
  std::int32_t units = 0;    // compute units that it may use; 0: all
  std::int64_t stream = -1;  // its number; -1: none
  ref<sg::stream> within;    // that stream, where compute units are set aside for it
  std::shared_ptr<const compiled_plan> plan;
  binding operands;
  sg_backend_copy copy{};
  bool tracked = true;
  std::string label;
  std::vector<access> accesses;
  // What an update must keep: the operation; of GEMMs their shapes and how they were to be planned; of a scale-and-add
  // A and C as those of a problem.
  sg_operation operation = SG_OPERATION_MARKER;
  std::vector<problem> shapes;
  plan_request request;
};

struct graph_program : recorded_graph {
  explicit graph_program(std::vector<recorded_work> recorded);

  std::vector<recorded_work> works;
  std::vector<access> accesses;  // of all works, in few ranges; with `device` only

  // Gives the works to the device as one graph, where it takes them. Throws std::bad_alloc.
  void put_on(const sg::device &on);
};

}  // namespace sg
