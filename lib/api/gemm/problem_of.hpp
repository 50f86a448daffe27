// SPDX-License-Identifier: Apache-2.0
// Checks an sg_gemm_desc and converts it to a column-major problem and addresses.
#pragma once

#include <streamgemm/gemm.h>

#include <vector>

#include "api/plan_options.hpp"
#include "ops/binding.hpp"
#include "plan/gemm/resident/problem.hpp"
#include "run/memory/memory_kinds.hpp"

namespace sg {

// The checked operands of one GEMM.
struct checked_gemm {
  problem shape;
  binding::head where;
  // The pointer arrays of A, B, C, in this order, as far as they exist.
  std::vector<std::vector<char *>> pointers;
  bool nothing_to_do = false;  // an empty C, or alpha * A * B == 0 with beta == 1
};

// The names of the matrices in messages: those of the caller's descriptor.
struct gemm_names {
  const char *a = "a", *b = "b", *c = "c";
};

// `pointers_required`: false for a plan made ahead. Throws sg::error naming the argument; `name` is the descriptor's
// name in messages.
checked_gemm check_gemm(const memory_kinds &kinds, const sg_gemm_desc &desc, const operand_spaces &known,
                        bool pointers_required, const char *name, const gemm_names &names = {});

// What an update of a recorded GEMM must keep: not its batch, scalars, places and distances of items.
inline problem fixed_in_updates(problem p) noexcept {
  p.batch = 1;
  p.no_multiply = false, p.beta_zero = true;
  for (operand *each : {&p.a, &p.b, &p.c, &p.bias})
    each->item_stride = 0, each->pointer_array = false, each->space = SG_MEMORY_DEVICE;
  return p;
}

// Converts a request for the caller's C to the column-major problem, in which a row-major C is transposed.
plan_request request_for(const sg_gemm_desc &desc, const problem &shape, plan_request r);

}  // namespace sg
