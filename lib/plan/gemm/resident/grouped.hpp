// SPDX-License-Identifier: Apache-2.0
// Several independent problems as one schedule.
#pragma once

#include "model/device_model.hpp"
#include "plan/gemm/resident/gemm_builder.hpp"

namespace sg {

// Problems with operands on the device, one command each, distributed so that the lanes complete at the same time.
schedule build_grouped(std::span<const problem> problems, const device_model &model, int lanes);

// Schedules of one problem each, one after the other on the same lanes, overlapped where lanes allow. Their device
// memory is a ring of as many shares as fit `memory_limit`.
schedule chain(std::span<const problem> problems, std::span<const schedule *const> parts, std::int64_t memory_limit,
               int lanes);

}  // namespace sg
