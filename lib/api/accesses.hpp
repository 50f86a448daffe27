// SPDX-License-Identifier: Apache-2.0
// What checked products read and write, and the rule that nothing which is written overlaps anything else.
#pragma once

#include <cstddef>
#include <vector>

#include "api/problem_of.hpp"
#include "run/tracker.hpp"

namespace sg {

// What the product reads and writes: appended, or, without pointer arrays, put into an array of four; their number.
void list_accesses(const checked_gemm &g, std::vector<access> &out);
std::size_t list_accesses(const checked_gemm &g, access *out);

// Throws when C overlaps an input or the bias, whichever item of either it is. `name`: the descriptor's; `by_rows`: the
// caller's C is row major, so that A and B have changed places.
void check_overlap(const checked_gemm &g, const char *name, bool by_rows);
// Throws when two items of a product's C overlap; `what` names them.
void check_items_apart(const checked_gemm &g, const char *what);
// Throws when what one product of a group writes overlaps any operand of another.
void check_products_apart(const std::vector<checked_gemm> &products);

}  // namespace sg
