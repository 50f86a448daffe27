// SPDX-License-Identifier: Apache-2.0
// One operation of layers.h: its checked operands, its schedule, its submission.
#pragma once

#include <streamgemm/layers.h>

#include <array>
#include <cstdint>
#include <vector>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/operands/given_operand.hpp"
#include "api/submission/submission.hpp"
#include "ops/binding.hpp"
#include "plan/form/command_form.hpp"
#include "run/order/strided_bytes.hpp"
#include "run/order/tracker.hpp"

namespace sg {

struct layer {
  command_form form;
  bool allows_in_place = true;  // the result may be a matrix that is read
  struct entry {
    const given_operand *given = nullptr;  // NULL: there is none
    strided_bytes set;                     // its bytes, if they are not those of the stored matrix
    std::vector<access> accesses;
    bool meets(const entry &other) const noexcept;
  };
  std::array<entry, command::most_views> operands{};  // by view of the command, as form.parameters
  binding where;
  bool is_empty = false, in_place = false;

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
void require_row_major(const given_operand &x);
void require_extent(const given_operand &x, std::int64_t rows, std::int64_t cols, const given_operand &result);
void require_same_form(const given_operand &x, const given_operand &result);
void require_in_device_memory(const context &on, const given_operand &x, const operand &stored,
                              const operand_address &at);
void require_reserved_zero(std::uint32_t reserved, const char *desc);
// Adds an operand that has passed check_view.
void add_operand(layer &to, const given_operand &given, std::size_t view, share needed = share::same);

// Binds the operands, checks their memory and that none overlaps the result, except for a matrix that is the result
// itself. `operation`: its name in messages; `wanted`: what the device must support.
void bind_layer(layer &x, const context &on, const sg_backend_command &wanted, const char *operation);

// The program of a form, within the limits of the submission.
std::shared_ptr<const program> program_for(context &on, const form &what, const checked_submit &order);

// Submits or records it. `desc`: the descriptor's name in messages.
void submit_layer(context &on, layer &x, sg_operation operation, const char *desc, checked_submit &order,
                  sg_job **out_job);

// Checks and submits an operation by its own function.
template <class Desc>
sg_status submit_desc(sg_context *context, const Desc *desc, const Desc &defaults, const sg_submit *submit,
                      sg_job **out_job,
                      void (*run)(sg::context &, const Desc &, const char *, checked_submit &, sg_job **)) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const auto on = context_of(context);
    require(desc, "desc");
    const Desc given = options_of(desc, defaults, "desc");
    checked_submit order(*on, submit);
    run(*on, given, "desc", order, out_job);
  });
}

}  // namespace sg
