// SPDX-License-Identifier: Apache-2.0
// A recurrent layer and its gradients, each as one schedule. The products of X with the weights are those of many steps
// at once; those of the states follow each other. On cores each lane has some sequences of the batch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "model/device_model.hpp"
#include "ops/cell.hpp"
#include "plan/form/form.hpp"
#include "plan/schedule/operand.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

// The parameters; those of the gradients are the last ones.
enum class recurrent_operand : std::uint8_t {
  x,
  w_ih,
  w_hh,
  h0,
  y,
  reserve,
  bias_ih,
  bias_hh,
  c0,
  hn,
  cn,
  dy,
  dhn,
  dcn,
  dx,
  dw_ih,
  dh0,
  dw_hh,
  dbias_ih,
  dbias_hh,
  dc0,
};
inline constexpr int recurrent_operands = 21;

// Elements from one step, and from one sequence of the batch, to the next.
struct sequence_strides {
  std::int64_t step = 0, batch = 0;
  bool operator==(const sequence_strides &) const = default;
};

struct recurrent_form {
  sg_cell cell = SG_CELL_LSTM;
  sg_gate_order order = SG_GATE_ORDER_DEFAULT;
  std::int64_t steps = 0, batch = 0, in = 0, hidden = 0;
  sequence_strides x, y, dy, dx;
  std::int64_t state_stride = 0;  // of h0, c0, hn, cn and their gradients, from sequence to sequence
  sg_dtype type = SG_DTYPE_F32, gradient_type = SG_DTYPE_F32;
  sg_compute compute = SG_COMPUTE_EXACT;
  bool reverse = false, accumulate = false;
  std::uint32_t given = 0;                                // a bit for each operand
  std::array<memory_space, recurrent_operands> spaces{};  // of those
  std::int64_t workspace = 0;  // limit of the rows of steps in the arena, in bytes; 0: by the model

  bool has(recurrent_operand x) const noexcept { return given >> int(x) & 1; }
  void give(recurrent_operand x, memory_space space = SG_MEMORY_DEVICE) noexcept {
    given |= 1u << int(x);
    spaces[std::size_t(x)] = space;
  }
  bool is_lstm() const noexcept { return cell == SG_CELL_LSTM; }
  std::int64_t gates() const noexcept { return is_lstm() ? 4 : 3; }  // blocks of the weights
  bool operator==(const recurrent_form &) const = default;
};
// The gradients.
struct recurrent_backward_form : recurrent_form {
  bool operator==(const recurrent_backward_form &) const = default;
};

sg_dtype type_of(const recurrent_form &f, recurrent_operand which) noexcept;
// Bytes from an operand's first element to its end; 0 if it is empty. Throws on overflow.
std::int64_t bytes_of(const recurrent_form &f, recurrent_operand which);
// A sequence of the form: x, y, dy or dx.
const sequence_strides &strides_of(const recurrent_form &f, recurrent_operand which) noexcept;

// Of a layer with elements in a result. lanes: compute lanes to use at most. Sets predicted_seconds and bound_seconds.
// Forward: x, w_ih, w_hh and y are given. Backward: x, w_ih, w_hh, y and reserve.
schedule build_recurrent(const recurrent_form &f, const device_model &model, int lanes);
schedule build_recurrent_backward(const recurrent_form &f, const device_model &model, int lanes);

// Bytes of the rows of steps without a limit.
std::int64_t usual_recurrent_workspace(const device_model &model);
// The parts of the forms: within the memory limit, by products of fewer steps at once if need be. The gradients have
// one size.
schedule plan_of(const recurrent_form &f, const plan_terms &terms);
schedule plan_of(const recurrent_backward_form &f, const plan_terms &terms);
void visit_operands(recurrent_form &f, const operand_visitor &visit);
void visit_operands(recurrent_backward_form &f, const operand_visitor &visit);
std::uint64_t hash_of(const recurrent_form &f) noexcept;
std::string description_of(const recurrent_form &f);
std::string description_of(const recurrent_backward_form &f);

}  // namespace sg
