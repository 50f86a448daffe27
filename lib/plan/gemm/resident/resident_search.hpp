// SPDX-License-Identifier: Apache-2.0
// Chooses the schedule of a problem with all operands on the device: one command, or split over lanes.
#pragma once

#include "plan/gemm/resident/candidate.hpp"

namespace sg {

schedule plan_resident(const problem &p, const plan_terms &terms);

}  // namespace sg
