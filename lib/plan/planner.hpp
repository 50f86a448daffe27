// SPDX-License-Identifier: Apache-2.0
// Chooses the schedule: builds the candidates, simulates each, keeps the fastest.
#pragma once

#include <memory>
#include <vector>

#include "plan/gemm/problem.hpp"
#include "plan/model/machine_model.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

// The schedule of one problem, or of several independent ones (grouped). Deterministic. Throws sg::error:
// SG_STATUS_OUT_OF_MEMORY if even the smallest tiles exceed the memory limit (the message gives the requirement),
// SG_STATUS_UNSUPPORTED if the device has no such GEMM or a forced choice is impossible for this problem,
// SG_STATUS_INVALID_ARGUMENT if the request contradicts itself. `model` is that of the request's device.
std::shared_ptr<const schedule> make_plan(const std::vector<problem> &problems, const device_model &model,
                                          const plan_request &request);
// Likewise for the request's device of a machine; SG_STATUS_INVALID_ARGUMENT if the machine has no such device.
std::shared_ptr<const schedule> make_plan(const std::vector<problem> &problems, const machine_model &machine,
                                          const plan_request &request);

}  // namespace sg
