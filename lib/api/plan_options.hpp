// SPDX-License-Identifier: Apache-2.0
// Converts sg_plan_options to the planner's request.
#pragma once

#include <streamgemm/gemm.h>

#include "plan/form/plan_request.hpp"

namespace sg {

// Memory spaces of the operands that the caller specified.
struct operand_spaces {
  sg_memory_kind a = SG_MEMORY_AUTO, b = SG_MEMORY_AUTO, c = SG_MEMORY_AUTO, bias = SG_MEMORY_AUTO;
  sg_memory_kind absent = SG_MEMORY_AUTO;  // of operands without an address whose own is SG_MEMORY_AUTO
};

// The planner's request, and the memory spaces, from the caller's options. NULL: defaults. Throws sg::error; `name` is
// the options' name in messages.
plan_request check_plan_options(const sg_plan_options *given, const char *name, operand_spaces &out_spaces);

}  // namespace sg
