// SPDX-License-Identifier: Apache-2.0
// One operand of the caller, and the checks of its shape, op, stride and pointers.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ops/binding.hpp"
#include "plan/schedule/operand.hpp"

namespace sg {

struct given_operand {
  const char *desc;  // the descriptor's name in messages
  const char *name;  // "a", "b", "c" or "bias"
  sg_matrix view;
  void *const *array;
  std::int64_t stride;
  const char *data = ".data";          // the pointer's field, after the name
  const void *const *field = nullptr;  // the pointer's field in the descriptor, if it is known
};

// A matrix of a descriptor without a batch; given_by_rows: in row-major layout if it has both.
given_operand given_matrix(const char *desc, const char *name, const sg_matrix &of) noexcept;
given_operand given_by_rows(const char *desc, const char *name, const sg_matrix &of) noexcept;
// Contiguous values, by a pointer in the descriptor.
template <class Pointer>
given_operand given_values(const char *desc, const char *name, const Pointer &of, std::int64_t rows, std::int64_t cols,
                           sg_dtype type) noexcept {
  return {desc,
          name,
          {const_cast<void *>(static_cast<const void *>(of)), rows, cols, 0, type, SG_LAYOUT_COLUMN_MAJOR},
          nullptr,
          0,
          "",
          reinterpret_cast<const void *const *>(&of)};
}

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
sg_transpose op_on_stored(const given_operand &x, sg_transpose op, sg_layout c_layout);

// The operand's address, or its addresses, whose array is added to `storage`. Throws if an address that is `touched` is
// NULL or misaligned.
void bind_operand(const given_operand &x, const operand &o, std::int64_t batch, bool touched, parameter_address &where,
                  std::vector<std::vector<char *>> &storage);

// The scalar as the accumulator of `out` represents it. Throws if it cannot.
sg_scalar checked_scalar(const char *desc, const char *name, const sg_scalar &s, sg_dtype out);

}  // namespace sg
