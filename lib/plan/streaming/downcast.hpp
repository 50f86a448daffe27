// SPDX-License-Identifier: Apache-2.0
// f32 factors that are rounded to bf16 on their way to the device, so that half the bytes cross the link.
#pragma once

#include "plan/gemm/problem.hpp"
#include "plan/model/device_model.hpp"

namespace sg {

// The problem, narrowed where the caller's compute allows it, host threads touch both factors anyway, because both lie
// in pageable memory, and the device can be no slower for it.
problem downcast_if_staged(const problem &p, const device_model &model);

}  // namespace sg
