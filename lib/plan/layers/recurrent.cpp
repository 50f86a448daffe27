// SPDX-License-Identifier: Apache-2.0
// Forward. Rows of the gates' sums of many steps are computed from X at once; each step adds the state's part to its
// row, and then applies the cell. Rows are in the reserve, or in the arena for as many steps as it has room for.
#include "plan/layers/recurrent.hpp"

#include <algorithm>
#include <vector>

#include "plan/layers/recurrent_parts.hpp"

namespace sg {
namespace {

constexpr std::int64_t most_bytes_of_rows = std::int64_t(256) << 20, most_bytes_of_rows_on_cores = std::int64_t(32)
                                                                                                   << 20;

class recurrent_build : recurrent_parts {
 public:
  recurrent_build(const recurrent_form &f, const device_model &model, int lanes)
      : recurrent_parts(f, model, lanes, false) {}

  schedule run() {
    if (f_.steps == 0) {
      finish_without_steps();
      return finish("recurrent, no steps");
    }
    prepare();
    for (std::int64_t first = 0; first < f_.steps; first += steps_of_rows_)
      add_turns({first, std::min(steps_of_rows_, f_.steps - first)});
    finish_states();
    return finish(f_.is_lstm() ? "lstm" : "gru");
  }

 private:
  void prepare() {
    const std::int64_t row = blocks_of_row * hidden();
    if (f_.has(which::reserve)) {
      steps_of_rows_ = f_.steps;
      rows_ = {slot(which::reserve), wide(), f_.batch * row, row, row};
    } else {
      const std::int64_t of_step = f_.batch * row * size_of(wide());
      const std::int64_t most = f_.workspace > 0 ? f_.workspace : usual_recurrent_workspace(model_);
      steps_of_rows_ = std::clamp<std::int64_t>(most / of_step, 1, f_.steps);
      rows_ = add_sequence(wide(), row, steps_of_rows_);
    }
    const double of_gates = 2.0 * double(f_.steps) * double(f_.batch) * double(f_.gates() * hidden());
    input_lanes_ = lanes_for(of_gates * double(f_.in), steps_of_rows_);
    batches_ = cut(f_.batch, lanes_for(of_gates * double(hidden()), f_.batch));
    if (f_.is_lstm() && f_.has(which::cn)) last_state_ = add_wide_state(wide());
    if (f_.cell == SG_CELL_GRU_RESET_BEFORE) reset_state_ = add_wide_state(f_.type);
    if (f_.has(which::bias_ih) || f_.has(which::bias_hh)) add_biases();
    const which first_state = f_.is_lstm() ? which::c0 : which::h0;
    const view to = state_of(0, all_batch());
    f_.has(first_state) ? convert(to, of_state(first_state, all_batch())) : fill(to);
    end_phase();
  }

  std::int32_t add_wide_state(sg_dtype type) {
    return builder_.add_device_buffer(type, f_.batch * hidden() * size_of(type));
  }

  // The biases of all blocks of a row.
  void add_biases() {
    bias_ = builder_.add_device_buffer(wide(), blocks_of_gates * hidden() * size_of(wide()));
    fill(bias_of({0, 0, blocks_of_gates}));
    const auto add_part = [&](which given, const weight_part &part) {
      if (f_.has(given))
        add_to(bias_of(part), of_vector(slot(given), f_.type, part.from * hidden(), part.count * hidden()));
    };
    for (const weight_part &part : input_parts()) add_part(which::bias_ih, part);
    add_part(which::bias_hh, state_part());
  }
  view bias_of(const weight_part &part) const {
    return of_vector(bias_, wide(), part.to * hidden(), part.count * hidden());
  }

  // The rows of turns that are computed together are in the order of time.
  std::int64_t row_of(std::int64_t turn) const {
    const std::int64_t first = turn / steps_of_rows_ * steps_of_rows_;
    const std::int64_t count = std::min(steps_of_rows_, f_.steps - first);
    return f_.reverse ? count - 1 - (turn - first) : turn - first;
  }
  view blocks_of(std::int64_t turn, range batch, std::int64_t first, std::int64_t count) const {
    return view_of(rows_, {row_of(turn), 1}, batch, {}, first * hidden(), count * hidden());
  }
  view state_of(std::int64_t turn, range batch) const { return blocks_of(turn, batch, blocks_of_gates, 1); }

  void add_turns(range turns) {
    const std::int64_t first_step = f_.reverse ? f_.steps - turns.end() : turns.first;
    const std::vector<range> parts = cut(turns.size, input_lanes_);
    for (std::size_t lane = 0; lane < parts.size(); ++lane) add_inputs(first_step, parts[lane], int(lane));
    end_phase();
    for (std::int64_t turn = turns.first; turn < turns.end(); ++turn)
      for (std::size_t lane = 0; lane < batches_.size(); ++lane) add_step(turn, batches_[lane], int(lane));
    end_phase();
  }

  // Of `rows`, whose first one is that of `first_step`.
  void add_inputs(std::int64_t first_step, range rows, int lane) {
    const sequence x = of_operand(which::x, f_.in), both[] = {x, rows_};
    const range steps{first_step + rows.first, rows.size};
    const auto add_part = [&](const weight_part &part, bool multiplies) {
      const view c =
          view_of(rows_, rows, all_batch(), {both, multiplies ? 1u : 0u}, part.to * hidden(), part.count * hidden());
      const view bias = bias_of(part), *given = bias_ >= 0 ? &bias : nullptr;
      if (!multiplies) return fill(c, lane, given);
      multiply(c, of_weights(which::w_ih, part.from * hidden(), part.count * hidden()), SG_TRANSPOSE_T,
               view_of(x, steps, all_batch(), {both + 1, 1}, 0, f_.in), SG_TRANSPOSE_N, false, lane, given);
    };
    for (const weight_part &part : input_parts()) add_part(part, f_.in > 0);
    if (!f_.is_lstm()) add_part({0, 3, 1}, false);
  }

  void add_step(std::int64_t turn, range batch, int lane) {
    const sequence y = of_operand(which::y, hidden());
    const bool has_state = turn > 0 || f_.has(which::h0);
    const view before = turn > 0 ? of_step(y, step_of(turn - 1), batch) : of_state(which::h0, batch);
    const auto add_product = [&](const weight_part &part, const view &state) {
      multiply(blocks_of(turn, batch, part.to, part.count),
               of_weights(which::w_hh, part.from * hidden(), part.count * hidden()), SG_TRANSPOSE_T, state,
               SG_TRANSPOSE_N, true, lane);
    };
    if (has_state && f_.cell == SG_CELL_GRU_RESET_BEFORE) {
      add_product({0, 1, 2}, before);
      view reset{reset_state_, 0, 1, batch.first * hidden() * size_of(f_.type), hidden(), hidden(), batch.size};
      command c = cell_of(turn, batch);
      c.as<ops::cell>()->step = SG_BACKEND_CELL_RESET, c.as<ops::cell>()->keeps = false;
      c.views[ops::cell::y] = reset;
      add(c, lane);
      add_product({2, 3, 1}, reset);
    } else if (has_state) {
      add_product(state_part(), before);
    }
    command c = cell_of(turn, batch);
    c.views[ops::cell::y] = of_step(y, step_of(turn), batch);
    if (turn + 1 < f_.steps)
      c.views[ops::cell::next] = state_of(turn + 1, batch);
    else if (last_state_ >= 0)
      c.views[ops::cell::next] = of_wide_state(last_state_, batch);
    add(c, lane);
  }

  command cell_of(std::int64_t turn, range batch) const {
    command c;
    ops::cell what;
    what.kind = f_.cell, what.order = f_.order, what.keeps = f_.has(which::reserve);
    c.what = what;
    c.views[ops::cell::row] = blocks_of(turn, batch, 0, blocks_of_row);
    return c;
  }

  void finish_states() {
    if (f_.has(which::hn))
      convert(of_state(which::hn, all_batch()),
              of_step(of_operand(which::y, hidden()), step_of(f_.steps - 1), all_batch()));
    if (last_state_ >= 0) convert(of_state(which::cn, all_batch()), of_wide_state(last_state_, all_batch()));
  }

  void finish_without_steps() {
    const auto pass = [&](which to, which from) {
      if (!f_.has(to)) return;
      f_.has(from) ? convert(of_state(to, all_batch()), of_state(from, all_batch())) : fill(of_state(to, all_batch()));
    };
    pass(which::hn, which::h0);
    pass(which::cn, which::c0);
  }

  std::int64_t steps_of_rows_ = 1;
  sequence rows_;
  int input_lanes_ = 1;
  std::vector<range> batches_;  // by lane
  std::int32_t bias_ = -1, last_state_ = -1, reset_state_ = -1;
};

}  // namespace

std::int64_t usual_recurrent_workspace(const device_model &model) {
  return model.lanes_are_cores ? most_bytes_of_rows_on_cores : std::min(most_bytes_of_rows, model.usable_memory() / 4);
}

schedule build_recurrent(const recurrent_form &f, const device_model &model, int lanes) {
  return recurrent_build(f, model, lanes).run();
}

}  // namespace sg
