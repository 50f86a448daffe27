// SPDX-License-Identifier: Apache-2.0
// Shared by the schedules of a recurrent layer and of its gradients: phases of lanes, views of sequences, products.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/layers/recurrent.hpp"
#include "plan/schedule/schedule_builder.hpp"

namespace sg {

// Steps of all sequences of the batch, of `width` elements each. Its buffer's items are steps or sequences.
struct sequence {
  std::int32_t buffer = -1;
  sg_dtype type = SG_DTYPE_F32;
  std::int64_t step = 0, batch = 0, width = 0;
};

// The blocks of the weights that belong to blocks of a row.
struct weight_part {
  std::int64_t from, to, count;
};

class recurrent_parts {
 public:
  // backward: with the operands of the gradients.
  recurrent_parts(const recurrent_form &f, const device_model &model, int lanes, bool backward);

 protected:
  using which = recurrent_operand;

  std::int64_t hidden() const noexcept { return f_.hidden; }
  range all_steps() const noexcept { return {0, f_.steps}; }
  range all_batch() const noexcept { return {0, f_.batch}; }
  sg_dtype wide() const noexcept { return accumulator_of(f_.type); }
  // The step that is computed as number `turn`.
  std::int64_t step_of(std::int64_t turn) const noexcept { return f_.reverse ? f_.steps - 1 - turn : turn; }
  static std::int32_t slot(which x) noexcept { return std::int32_t(x); }

  // Of the weights of X, and of those of the state.
  std::span<const weight_part> input_parts() const noexcept;
  weight_part state_part() const noexcept { return f_.is_lstm() ? weight_part{0, 0, 4} : weight_part{0, 1, 3}; }

  sequence of_operand(which x, std::int64_t width) const noexcept;
  // Device memory for `steps` steps. batch_major: the steps of a sequence follow each other.
  sequence add_sequence(sg_dtype type, std::int64_t width, std::int64_t steps, bool batch_major = false);
  // `steps` of the sequences `batch`, as one matrix where `others` allow that too, else as items.
  view view_of(const sequence &x, range steps, range batch, std::span<const sequence> others, std::int64_t col,
               std::int64_t width) const;
  view of_step(const sequence &x, std::int64_t step, range batch) const {
    return view_of(x, {step, 1}, batch, {}, 0, x.width);
  }
  // Whether all steps of all sequences are one matrix, step by step or sequence by sequence.
  bool is_matrix(const sequence &x, bool batch_major) const noexcept;
  view of_state(which x, range batch) const noexcept;                   // h0 and the like
  view of_wide_state(std::int32_t buffer, range batch) const noexcept;  // of the schedule's own
  view of_weights(which x, std::int64_t first,
                  std::int64_t count) const noexcept;  // rows, as stored in row-major order
  view of_vector(std::int32_t buffer, sg_dtype type, std::int64_t first, std::int64_t count) const noexcept;

  // Appends to a lane, behind all commands of the phases before.
  std::uint32_t add(command c, int lane = 0);
  void end_phase();
  std::span<const std::uint32_t> before_phase() const noexcept { return barrier_; }
  void note(std::uint32_t command);  // of this phase, appended to the builder itself

  // c = op_a(a) * op_b(b) (+ c).
  void multiply(const view &c, const view &a, sg_transpose op_a, const view &b, sg_transpose op_b, bool adds, int lane,
                const view *bias = nullptr);
  void fill(const view &c, int lane = 0, const view *bias = nullptr);  // with zeros, or the bias in each column
  void convert(const view &to, const view &from, int lane = 0);
  void add_to(const view &to, const view &from, int lane = 0);  // of a type whose accumulator is that of `to`
  // Copies `count` steps, cast to the type of `to`.
  void copy_steps(const sequence &to, std::int64_t first, const sequence &from, std::int64_t from_first,
                  std::int64_t count);

  // Lanes for a number of operations that divide into `parts`.
  int lanes_for(double flops, std::int64_t parts) const noexcept;
  schedule finish(std::string strategy);

  const recurrent_form &f_;
  const device_model &model_;
  schedule_builder builder_;
  double flops_ = 0;

 private:
  int most_lanes_;
  bool items_are_sequences_;
  std::vector<std::vector<std::uint32_t>> pending_;  // by lane: waits of its next command
  std::vector<std::uint32_t> barrier_, latest_;
};

}  // namespace sg
