// SPDX-License-Identifier: Apache-2.0
// Checks an sg_gemm_desc and turns it into what the floors below work on: a column-major problem and addresses.
#pragma once

#include <streamgemm/gemm.h>

#include <vector>

#include "api/plan_options.hpp"
#include "ops/binding.hpp"
#include "plan/gemm/problem.hpp"
#include "run/memory/memory_kinds.hpp"

namespace sg {

// The checked operands of one product.
struct checked_gemm {
  problem shape;
  problem_binding where;
  // Storage of pointer arrays, in the order A, B, C of those that have one.
  std::vector<std::vector<char *>> pointers;
  bool nothing_to_do = false;  // an empty C, or alpha * A * B == 0 with beta == 1
};

// `pointers_required`: false for a plan made ahead, which may have none. Throws sg::error naming the argument; `name`
// is the descriptor's, for messages.
checked_gemm check_gemm(const memory_kinds &kinds, const sg_gemm_desc &desc, const operand_spaces &known,
                        bool pointers_required, const char *name);

// The scalar as the accumulator of `out` holds it. Throws where it cannot.
sg_scalar checked_scalar(const char *desc, const char *name, const sg_scalar &s, sg_dtype out);

}  // namespace sg
