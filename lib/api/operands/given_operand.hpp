// SPDX-License-Identifier: Apache-2.0
// One operand of the caller, and the checks of its shape, op, stride and pointers.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ops/binding.hpp"
#include "plan/form/operand.hpp"

namespace sg {

struct given_operand {
  const char *desc;  // the descriptor's name in messages
  const char *name;  // "a", "b", "c" or "bias"
  sg_matrix view;
  void *const *array;
  std::int64_t stride;
  const char *data = ".data";  // the pointer's field, after the name
};

// The same matrix in row-major layout if it is one row or one column, which has both layouts; otherwise the matrix.
sg_matrix by_rows_if_both(sg_matrix view) noexcept;

// The operand's pointer in messages. `item` < 0: the view's own; otherwise that of the pointer array.
std::string name_of_pointer(const given_operand &x, std::int64_t item);

// These throw sg::error naming the field.
void check_view(const given_operand &x);
void check_stride(const given_operand &x, const operand &o, std::int64_t batch, bool written);

// As stored, column major: a row-major matrix is its transpose.
operand stored(const given_operand &x, std::int64_t batch);

// The op on the stored operand that equals `op` on the caller's matrix, with C column major. Throws.
sg_op op_on_stored(const given_operand &x, sg_op op, sg_layout c_layout);

// The operand's address, or its addresses, whose array is added to `storage`. Throws if an address that is `touched` is
// NULL or misaligned.
void bind_operand(const given_operand &x, const operand &o, std::int64_t batch, bool touched, operand_address &where,
                  std::vector<std::vector<char *>> &storage);

}  // namespace sg
