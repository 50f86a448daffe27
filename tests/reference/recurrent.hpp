// SPDX-License-Identifier: Apache-2.0
// Recurrent layers by the formulas of recurrent.h, in extended precision.
#pragma once

#include <cmath>
#include <vector>

#include "functions.hpp"

namespace sg_reference {

struct recurrent_shape {
  sg_cell cell = SG_CELL_LSTM;
  sg_gate_order order = SG_GATE_ORDER_DEFAULT;
  std::int64_t steps = 1, batch = 1, in = 1, hidden = 1;
  bool reverse = false;

  std::int64_t gates() const { return cell == SG_CELL_LSTM ? 4 : 3; }
};

// Operands by name, in the order of steps, sequences and values. Missing ones are zeros.
struct recurrent_values {
  std::vector<real> x, w_ih, w_hh, bias_ih, bias_hh, h0, c0;
};

struct recurrent_results {
  std::vector<real> y, hn, cn;
};

// The formulas of recurrent.h. `rounds`: h is rounded to the type after each step.
inline recurrent_results run_recurrent(const recurrent_shape &s, const recurrent_values &v, sg_dtype type,
                                       bool rounds) {
  const auto row_of = [&](int gate) {  // the block of i, f, g, o, or r, z, n
    static constexpr int lstm[] = {0, 2, 3, 1}, gru[] = {1, 0, 2};
    return s.order == SG_GATE_ORDER_DEFAULT ? gate : s.cell == SG_CELL_LSTM ? lstm[gate] : gru[gate];
  };
  const std::int64_t h_size = s.hidden;
  const auto at = [](const std::vector<real> &of, std::int64_t index) {
    return of.empty() ? real(0) : of[std::size_t(index)];
  };
  recurrent_results out;
  out.y.resize(std::size_t(s.steps * s.batch * h_size));
  out.hn.resize(std::size_t(s.batch * h_size)), out.cn.resize(out.hn.size());
  for (std::int64_t b = 0; b < s.batch; ++b) {
    std::vector<real> h, c;
    for (std::int64_t k = 0; k < h_size; ++k)
      h.push_back(at(v.h0, b * h_size + k)), c.push_back(at(v.c0, b * h_size + k));
    for (std::int64_t turn = 0; turn < s.steps; ++turn) {
      const std::int64_t t = s.reverse ? s.steps - 1 - turn : turn;
      const auto input = [&](int gate, std::int64_t k) {
        const std::int64_t row = row_of(gate) * h_size + k;
        real sum = at(v.bias_ih, row);
        for (std::int64_t i = 0; i < s.in; ++i)
          sum += at(v.w_ih, row * s.in + i) * at(v.x, (t * s.batch + b) * s.in + i);
        return sum;
      };
      const auto recurrent = [&](int gate, std::int64_t k, const std::vector<real> &state) {
        const std::int64_t row = row_of(gate) * h_size + k;
        real sum = at(v.bias_hh, row);
        for (std::int64_t i = 0; i < h_size; ++i) sum += at(v.w_hh, row * h_size + i) * state[std::size_t(i)];
        return sum;
      };
      std::vector<real> next = h, reset = h;
      if (s.cell == SG_CELL_GRU_RESET_BEFORE)
        for (std::int64_t k = 0; k < h_size; ++k) {
          reset[std::size_t(k)] *= sigmoid(input(0, k) + recurrent(0, k, h));
          if (rounds) reset[std::size_t(k)] = rounded(type, reset[std::size_t(k)]);
        }
      for (std::int64_t k = 0; k < h_size; ++k) {
        const auto both = [&](int gate) { return input(gate, k) + recurrent(gate, k, h); };
        real &state = next[std::size_t(k)];
        if (s.cell == SG_CELL_LSTM) {
          c[std::size_t(k)] = sigmoid(both(1)) * c[std::size_t(k)] + sigmoid(both(0)) * std::tanh(both(2));
          state = sigmoid(both(3)) * std::tanh(c[std::size_t(k)]);
        } else {
          const real z = sigmoid(both(1));
          const real n = s.cell == SG_CELL_GRU ? std::tanh(input(2, k) + sigmoid(both(0)) * recurrent(2, k, h))
                                               : std::tanh(input(2, k) + recurrent(2, k, reset));
          state = (1 - z) * n + z * h[std::size_t(k)];
        }
        if (rounds) state = rounded(type, state);
        out.y[std::size_t((t * s.batch + b) * h_size + k)] = state;
      }
      h = next;
    }
    for (std::int64_t k = 0; k < h_size; ++k)
      out.hn[std::size_t(b * h_size + k)] = h[std::size_t(k)], out.cn[std::size_t(b * h_size + k)] = c[std::size_t(k)];
  }
  return out;
}

}  // namespace sg_reference
