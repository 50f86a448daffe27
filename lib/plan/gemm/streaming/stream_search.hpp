// SPDX-License-Identifier: Apache-2.0
// Chooses how operands on the host are streamed.
#pragma once

#include "plan/gemm/resident/candidate.hpp"

namespace sg {

schedule plan_stream(const problem &p, const plan_terms &terms);

}  // namespace sg
