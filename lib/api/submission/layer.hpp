// SPDX-License-Identifier: Apache-2.0
// One operation of layers.h: its checked operands, its schedule, its submission.
#pragma once

#include <streamgemm/layers.h>

#include <array>
#include <cstdint>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/operands/given_operand.hpp"
#include "api/operands/operand_set.hpp"
#include "api/submission/submit_operands.hpp"
#include "ops/binding.hpp"
#include "plan/form/command_form.hpp"
#include "run/order/strided_bytes.hpp"

namespace sg {

struct layer {
  layer(const context &on, const checked_submit &order) noexcept : bound(on, order.place_of_absent()) {}

  command_form form;
  bool allows_in_place = true;  // the result may be a matrix that is read
  bool by_rows = true;          // the command takes row-major matrices
  struct entry {
    const given_operand *given = nullptr;  // NULL: there is none
    strided_bytes set;                     // its bytes, if they are not those of the stored matrix
    std::int64_t alignment = 0;            // of its address, if it is more than that of a component
    bool separate = false;                 // it may not be the result
  };
  std::array<entry, command::most_views> operands{};  // by view of the command, as form.parameters
  operand_set bound;
  bool is_empty = false;

  void set_operation(const payload &what, const char *strategy, double flops_per_element,
                     command_form::split splits) noexcept {
    form.what = what, form.strategy = strategy, form.flops_per_element = flops_per_element, form.splits = splits;
  }
};
// Rows of the caller's matrix are columns as stored if it is row major.
inline command_form::split between_rows(bool by_rows) noexcept {
  return by_rows ? command_form::split::columns : command_form::split::rows;
}

inline bool is_layer_dtype(sg_dtype type) noexcept {
  return type == SG_DTYPE_F64 || type == SG_DTYPE_F32 || type == SG_DTYPE_F16 || type == SG_DTYPE_BF16;
}

// These throw sg::error naming the field. The given operands must outlive the layer.
void require_layer_type(const given_operand &result);
void require_layer_type(sg_dtype type, const char *desc);  // the descriptor's own field, dtype
void require_extent(const given_operand &x, std::int64_t rows, std::int64_t cols, const given_operand &result);
void require_same_form(const given_operand &x, const given_operand &result);
// One column of `x`'s type, with a value for each of its rows.
void require_column(const given_operand &column, const given_operand &x);
void require_some_columns(const given_operand &x);
void require_norm(sg_norm_kind kind, double epsilon, const char *desc);
// A finite number that the arithmetic of the type has.
void require_in_arithmetic(double value, sg_dtype type, const char *desc, const char *field);
// Indices, as i32: a column of one or two elements for each. Throws if the type or the address is wrong.
given_operand given_indices(const char *desc, const void *const &indices, sg_index_type type, std::int64_t count);
void add_indices(layer &to, const given_operand &indices, std::size_t view);
// Adds an operand that has passed check_view. A matrix of the layout that the command does not take is transposed.
void add_operand(layer &to, const given_operand &given, std::size_t view, share needed = share::same);
void add_matrix(layer &to, const given_operand &given, std::size_t view, share needed = share::same);

// Binds the operands, checks their memory and that none overlaps the result, except for a matrix that is the result
// itself. `operation`: its name in messages; `wanted`: what the device must support.
void bind_layer(layer &x, const sg_backend_command &wanted, const char *operation);

// Submits or records it. `name`: the descriptor's in messages; `fixed`: what updates of a recorded one keep, if it is
// not the whole form.
template <class Desc>
void submit_layer(context &on, layer &x, sg_operation operation, const Desc &desc, const char *name,
                  checked_submit &order, sg_job **out_job, const command_form *fixed = nullptr) {
  const form_of<command_form> what(x.form);
  const auto submit = [&](const form *kept) {
    submit_operands(on, x.bound, desc, name, {operation, what, x.is_empty, kept}, usual_request(order), order, out_job);
  };
  if (!fixed) return submit(nullptr);
  const form_of<command_form> kept(*fixed);
  submit(&kept);
}

}  // namespace sg
