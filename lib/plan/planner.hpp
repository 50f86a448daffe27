// SPDX-License-Identifier: Apache-2.0
// Makes the schedule of a form.
#pragma once

#include <memory>
#include <vector>

#include "model/machine_model.hpp"
#include "plan/form/form.hpp"

namespace sg {

// Deterministic. Throws sg::error: SG_STATUS_OUT_OF_MEMORY if even the smallest tiles or workspaces exceed the memory
// limit (the message gives the requirement), SG_STATUS_UNSUPPORTED if the device has no such operation or a forced
// choice is impossible for this form, SG_STATUS_INVALID_ARGUMENT if the request contradicts itself. `model` is that of
// the request's device.
std::shared_ptr<const schedule> make_plan(const form &what, const device_model &model, const plan_request &request);
// The schedule for the request's device of a machine, or for several; SG_STATUS_INVALID_ARGUMENT if the machine has no
// such device.
std::shared_ptr<const schedule> make_plan(const form &what, const machine_model &machine, const plan_request &request);
// Of a schedule of one device: its simulated time on 2, 4, ..., all devices of the machine, each of which takes less
// than 0.9 of the one before, and so little that the planner would choose them. Empty if none does.
std::vector<time_on_devices> times_on_more_devices(const form &what, const machine_model &machine,
                                                   const plan_request &request, const schedule &of_one);

}  // namespace sg
