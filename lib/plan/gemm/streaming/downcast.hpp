// SPDX-License-Identifier: Apache-2.0
// f32 factors rounded to bf16 while they are staged, so that half the bytes cross the link.
#pragma once

#include "model/device_model.hpp"
#include "plan/gemm/resident/problem.hpp"

namespace sg {

// The problem, with a downcast if the requested compute type allows it, both factors are staged by host threads anyway
// (pageable memory), and the device's bound does not increase.
problem downcast_if_staged(const problem &p, const device_model &model);

}  // namespace sg
