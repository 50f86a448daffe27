// SPDX-License-Identifier: Apache-2.0
// How the caller narrows the planner's choice: sg_plan_options to the planner's request.
#pragma once

#include <streamgemm/gemm.h>

#include "plan/gemm/problem.hpp"

namespace sg {

// What is known of the operands' places besides their pointers.
struct operand_spaces {
  sg_memory_kind a = SG_MEMORY_AUTO, b = SG_MEMORY_AUTO, c = SG_MEMORY_AUTO, bias = SG_MEMORY_AUTO;
};

// The planner's request, and the places, from options of the caller's. NULL for all defaults. Throws sg::error; `name`
// is the options', for messages.
plan_request check_plan_options(const sg_plan_options *given, const char *name, operand_spaces &out_spaces);

// A request in terms of the caller's C, turned to the column-major problem's, in which a row-major C is transposed.
plan_request request_for(const sg_gemm_desc &desc, const problem &shape, plan_request r);

}  // namespace sg
