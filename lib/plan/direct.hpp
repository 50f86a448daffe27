// SPDX-License-Identifier: Apache-2.0
// The commonest schedule: a problem whose operands lie on the device, as one command.
#pragma once

#include "plan/schedule_builder.hpp"

namespace sg {

schedule build_direct(const problem &p);

// Appends the commands of one problem of the builder, on one compute lane: one product, or the scaling of C.
void add_direct(schedule_builder &builder, std::int32_t group, std::uint16_t lane_index);

}  // namespace sg
