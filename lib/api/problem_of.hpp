// SPDX-License-Identifier: Apache-2.0
// Checks an sg_gemm_desc and turns it into what the floors below work on: a column-major problem, addresses, footprints.
#pragma once

#include <vector>

#include <streamgemm/gemm.h>

#include "plan/problem.hpp"
#include "run/binding.hpp"
#include "run/context.hpp"
#include "run/tracker.hpp"

namespace sg {

// The checked operands of one product.
struct checked_gemm {
  problem shape;
  problem_binding where;
  // Storage of pointer arrays, in the order A, B, C of those that have one.
  std::vector<std::vector<char *>> pointers;
  bool nothing_to_do = false;  // an empty C, or alpha * A * B == 0 with beta == 1
};

// What is known of the operands' places besides their pointers.
struct places {
  sg_memory_kind a = SG_MEMORY_AUTO, b = SG_MEMORY_AUTO, c = SG_MEMORY_AUTO;
};

// `pointers_given`: false for a plan made ahead, which has none. Throws sg::error naming the argument; `name` is the
// descriptor's, for messages.
checked_gemm check_gemm(const context &on, const sg_gemm_desc &desc, const places &known, bool pointers_given,
                        const char *name);

// What the product reads and writes: appended, or, without pointer arrays, put into an array of three; their number.
void list_accesses(const checked_gemm &g, std::vector<access> &out);
std::size_t list_accesses(const checked_gemm &g, access *out);

// Throws when two items of a product's C overlap; `what` names them.
void check_items_apart(const checked_gemm &g, const char *what);
// Throws when what one product of a group writes overlaps any operand of another.
void check_products_apart(const std::vector<checked_gemm> &products);

// The planner's request, and the places, from options of the caller's. NULL for all defaults.
plan_request check_plan_options(const sg_plan_options *given, const char *name, places &out_places);

// A request in terms of the caller's C, turned to the column-major problem's, in which a row-major C is transposed.
plan_request request_for(const sg_gemm_desc &desc, const problem &shape, plan_request r);

}  // namespace sg
