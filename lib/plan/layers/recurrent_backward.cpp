// SPDX-License-Identifier: Apache-2.0
// Backward, from the last step to the first: each step computes the gradients of its gates' sums, and adds their part
// to the gradient of the state before. The gradients of X and of the weights follow from those of all steps at once.
#include <algorithm>
#include <deque>
#include <iterator>
#include <vector>

#include "base/checked.hpp"
#include "ops/cell_backward.hpp"
#include "plan/layers/column_sums.hpp"
#include "plan/layers/recurrent_parts.hpp"

namespace sg {
namespace {

class recurrent_backward_build : recurrent_parts {
 public:
  recurrent_backward_build(const recurrent_form &f, const device_model &model, int lanes)
      : recurrent_parts(f, model, lanes, true), x_(of_operand(which::x, f.in)), batch_major_(is_batch_major()) {}

  schedule run() {
    const bool is_empty = f_.steps == 0 || f_.batch == 0 || hidden() == 0;
    is_empty ? finish_without_gates() : add_all();
    return finish(is_empty ? "recurrent backward, no gates" : f_.is_lstm() ? "lstm backward" : "gru backward");
  }

 private:
  void add_all() {
    dgates_ = add_sequence(f_.type, blocks_of_gates * hidden(), f_.steps, batch_major_);
    dh_ = add_sequence(wide(), hidden(), f_.steps, batch_major_);
    const double of_gates = 2.0 * double(f_.steps) * double(f_.batch) * double(f_.gates() * hidden());
    batches_ = cut(f_.batch, lanes_for(of_gates * double(hidden()), f_.batch));
    prepare_state();
    prepare_operands();
    end_phase();
    for (std::int64_t turn = f_.steps - 1; turn >= 0; --turn)
      for (std::size_t lane = 0; lane < batches_.size(); ++lane) add_step(turn, batches_[lane], int(lane));
    end_phase();
    if (f_.has(which::dx)) add_dx(of_gates * double(f_.in));
    if (f_.has(which::dw_ih))
      for (const weight_part &part : input_parts())
        add_weights(which::dw_ih, packed_x_, part, of_gates * double(f_.in));
    if (f_.has(which::dw_hh)) add_weights(which::dw_hh, states_, state_part(), of_gates * double(hidden()));
    if (f_.has(which::dbias_ih))
      for (const weight_part &part : input_parts()) add_bias(which::dbias_ih, part);
    if (f_.has(which::dbias_hh))
      for (const weight_part &part : bias_parts()) add_bias(which::dbias_hh, part);
    if (f_.has(which::dh0)) convert(of_state(which::dh0, all_batch()), of_wide_state(dh0_, all_batch()));
    if (f_.has(which::dc0)) convert(of_state(which::dc0, all_batch()), of_wide_state(dc_, all_batch()));
  }

  // The order of dgates: that in which X, or another sequence, is a matrix.
  bool is_batch_major() const {
    const sequence decides = f_.has(which::dw_ih) ? x_
                             : f_.has(which::dx)  ? of_operand(which::dx, f_.in)
                                                  : of_operand(which::dy, hidden());
    return !is_matrix(decides, false) && is_matrix(decides, true);
  }

  std::int32_t add_wide_state() { return builder_.add_device_buffer(wide(), f_.batch * hidden() * size_of(wide())); }

  // The gradients of the states: dY of each step, dhn and dcn of the last one.
  void prepare_state() {
    if (f_.has(which::dy))
      copy_steps(dh_, 0, of_operand(which::dy, hidden()), 0, f_.steps);
    else
      fill(view_of(dh_, all_steps(), all_batch(), {}, 0, hidden()));
    if (f_.has(which::dhn)) add_to(of_step(dh_, step_of(f_.steps - 1), all_batch()), of_state(which::dhn, all_batch()));
    if (f_.is_lstm()) {
      dc_ = add_wide_state();
      const view dc = of_wide_state(dc_, all_batch());
      f_.has(which::dcn) ? convert(dc, of_state(which::dcn, all_batch())) : fill(dc);
    }
    if (f_.has(which::dh0)) {
      dh0_ = add_wide_state();
      fill(of_wide_state(dh0_, all_batch()));
    }
  }

  // X and the states before the steps as matrices, in the order of dgates.
  void prepare_operands() {
    packed_x_ = x_;
    if (f_.has(which::dw_ih) && f_.in > 0 && !is_matrix(x_, batch_major_)) {
      packed_x_ = add_sequence(f_.type, f_.in, f_.steps, batch_major_);
      copy_steps(packed_x_, 0, x_, 0, f_.steps);
    }
    if (!f_.has(which::dw_hh)) return;
    states_ = add_sequence(f_.type, hidden(), f_.steps, batch_major_);
    const sequence y = of_operand(which::y, hidden());
    if (f_.steps > 1) copy_steps(states_, f_.reverse ? 0 : 1, y, f_.reverse ? 1 : 0, f_.steps - 1);
    const view first = of_step(states_, step_of(0), all_batch());
    f_.has(which::h0) ? convert(first, of_state(which::h0, all_batch())) : fill(first);
  }

  void add_step(std::int64_t turn, range batch, int lane) {
    const std::int64_t step = step_of(turn), row = blocks_of_row * hidden();
    const sequence rows{slot(which::reserve), wide(), f_.batch * row, row, row};
    const bool has_before = turn > 0 || dh0_ >= 0;
    view before;  // the gradient of the state before the step
    if (has_before) before = turn > 0 ? of_step(dh_, step_of(turn - 1), batch) : of_wide_state(dh0_, batch);
    command c;
    c.what = ops::cell_backward{f_.cell, f_.order};
    c.views[ops::cell_backward::dgates] = of_step(dgates_, step, batch);
    c.views[ops::cell_backward::row] = of_step(rows, step, batch);
    c.views[ops::cell_backward::dh] = of_step(dh_, step, batch);
    if (f_.is_lstm())
      c.views[ops::cell_backward::dstate] = of_wide_state(dc_, batch);
    else if (has_before)
      c.views[ops::cell_backward::dstate] = before;
    add(c, lane);
    if (!has_before) return;
    const weight_part part = state_part();
    multiply(before, of_weights(which::w_hh, 0, f_.gates() * hidden()), SG_TRANSPOSE_N,
             view_of(dgates_, {step, 1}, batch, {}, part.to * hidden(), part.count * hidden()), SG_TRANSPOSE_N, true,
             lane);
  }

  void add_dx(double flops) {
    if (f_.in == 0) return;
    const sequence dx = of_operand(which::dx, f_.in);
    const bool by_sequence = dx.batch > dx.step;  // the parts of lanes do not interleave
    const std::int64_t count = by_sequence ? f_.batch : f_.steps;
    const std::vector<range> parts = cut(count, lanes_for(flops, count));
    for (std::size_t lane = 0; lane < parts.size(); ++lane) {
      const range steps = by_sequence ? all_steps() : parts[lane], batch = by_sequence ? parts[lane] : all_batch();
      bool adds = false;
      for (const weight_part &part : input_parts()) {
        multiply(view_of(dx, steps, batch, {&dgates_, 1}, 0, f_.in),
                 of_weights(which::w_ih, part.from * hidden(), part.count * hidden()), SG_TRANSPOSE_N,
                 view_of(dgates_, steps, batch, {&dx, 1}, part.to * hidden(), part.count * hidden()), SG_TRANSPOSE_N,
                 adds, int(lane));
        adds = true;
      }
    }
  }

  // dW = dgates^T * X, or * the states.
  void add_weights(which dw, const sequence &by, const weight_part &part, double flops) {
    if (by.width == 0) return;
    const std::int64_t size = part.count * hidden();
    const std::vector<range> parts = cut(size, lanes_for(flops, size), grain);
    for (std::size_t lane = 0; lane < parts.size(); ++lane) {
      const range &rows = parts[lane];
      multiply(of_weights(dw, part.from * hidden() + rows.first, rows.size), matrix_of(by, 0, by.width), SG_TRANSPOSE_N,
               matrix_of(dgates_, part.to * hidden() + rows.first, rows.size), SG_TRANSPOSE_T, f_.accumulate,
               int(lane));
    }
  }
  // All steps of all sequences, in the order of dgates.
  view matrix_of(const sequence &x, std::int64_t col, std::int64_t width) const {
    return view_of(x, all_steps(), all_batch(), {&dgates_, 1}, col, width);
  }

  sums_of_columns sums_of_dgates() const {
    return {f_.steps * f_.batch, blocks_of_gates * hidden(), true, f_.type, f_.gradient_type, f_.accumulate};
  }
  // Those of sums that both biases have are computed once.
  std::vector<weight_part> bias_parts() const {
    if (f_.is_lstm()) return {{0, 0, 4}};
    return {{0, 1, 2}, {2, 3, 1}};
  }
  void add_bias(which db, const weight_part &part) {
    auto known = std::ranges::find_if(sums_, [&](const auto &each) { return each.first == part.to; });
    if (known == sums_.end()) {
      sums_.emplace_back(part.to,
                         column_sums(builder_, sums_of_dgates(), {part.to * hidden(), part.count * hidden()}, 1, 0));
      known = std::prev(sums_.end());
      const std::int64_t width = blocks_of_gates * hidden(), size = size_of(f_.type);
      if (groups_ < 0)
        groups_ = builder_.add_alias(dgates_.buffer, f_.type, rows_of_group(f_.steps * f_.batch) * width * size);
      note(known->second.add(groups_, 0, width, f_.steps * f_.batch, before_phase()));
    }
    const std::int64_t offset = (part.from - part.to) * hidden() * size_of(f_.gradient_type);
    note(known->second.finish(slot(db), offset, before_phase()));
  }

  // Without steps, sequences or values of the state: sums of nothing.
  void finish_without_gates() {
    if (f_.has(which::dx)) fill(view_of(of_operand(which::dx, f_.in), all_steps(), all_batch(), {}, 0, f_.in));
    const auto pass = [&](which to, which from) {
      if (!f_.has(to) || f_.batch == 0) return;
      f_.has(from) ? convert(of_state(to, all_batch()), of_state(from, all_batch())) : fill(of_state(to, all_batch()));
    };
    pass(which::dh0, which::dhn);
    pass(which::dc0, which::dcn);
    if (f_.accumulate) return;
    const std::int64_t rows = f_.gates() * hidden();
    if (f_.has(which::dw_ih) && f_.in > 0) fill(of_weights(which::dw_ih, 0, rows));
    if (f_.has(which::dw_hh)) fill(of_weights(which::dw_hh, 0, rows));
    for (const which each : {which::dbias_ih, which::dbias_hh})
      if (f_.has(each)) fill(of_vector(slot(each), f_.gradient_type, 0, rows));
  }

  const sequence x_;
  const bool batch_major_;
  std::vector<range> batches_;  // by lane
  sequence dgates_, dh_;
  sequence packed_x_, states_;
  std::int32_t dc_ = -1, dh0_ = -1, groups_ = -1;
  std::deque<std::pair<std::int64_t, column_sums>> sums_;  // by the first block
};

}  // namespace

schedule build_recurrent_backward(const recurrent_form &f, const device_model &model, int lanes) {
  return recurrent_backward_build(f, model, lanes).run();
}

}  // namespace sg
