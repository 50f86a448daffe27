// SPDX-License-Identifier: Apache-2.0
// Chooses how a problem with operands on the host is streamed.
#pragma once

#include "plan/gemm/candidate.hpp"

namespace sg {

schedule plan_stream(const problem &p, const plan_terms &terms);

}  // namespace sg
