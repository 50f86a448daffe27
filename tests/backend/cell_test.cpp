// SPDX-License-Identifier: Apache-2.0
// Steps of recurrent cells and their gradients against formulas of higher precision; gaps keep their bytes.
#include "ops/cell.hpp"

#include <cmath>
#include <cstring>
#include <random>

#include "base/dtype.hpp"
#include "gemm_case.hpp"
#include "ops/cell_backward.hpp"

namespace sg::test {
namespace {

struct cell_case {
  sg_cell cell;
  sg_gate_order order;
  sg_dtype type;
  std::int64_t hidden, batch, gap;
  bool keeps, has_next, in_place;  // in_place: the next state replaces that of the row
};

using sg_reference::sigmoid;

class cells : public conformance {
 protected:
  // Device memory for a matrix, with its bytes before the command.
  struct placed {
    placed(const std::shared_ptr<device> &on, stream &in, host_operand &from)
        : at(on, std::int64_t(from.bytes.size())), host(from) {
      at.write(in, from.bytes.data());
    }
    char *data() const { return at.data(); }
    void read(stream &in) { at.read(in, host.bytes.data()); }
    memory at;
    host_operand &host;
  };

  host_operand random_matrix(sg_dtype type, std::int64_t rows, const cell_case &f) {
    host_operand made(type, rows, f.batch, f.gap, 1);
    made.poison();
    made.randomise(random_);
    return made;
  }
  template <class Command>
  void run(const Command &c) {
    ASSERT_TRUE(dev()->supports(c.header));
    complete(*dev(), stream_, c);
  }
  static real value(host_operand &from, std::int64_t row, std::int64_t col) { return from.get(0, row, col).real(); }

  void expect_near(real wanted, real found, sg_dtype type, const cell_case &f, const char *what) {
    const precision p = precision_of(type, false);
    const real arithmetic = f.type == SG_DTYPE_F64 ? 1e-14L : 3e-6L;
    ASSERT_LE(std::abs(wanted - found), p.out * std::abs(wanted) + arithmetic + 3 * p.tiny)
        << what << " of cell " << f.cell << " " << sg::name_of(f.type) << " " << f.hidden << " x " << f.batch << ": "
        << double(found) << " instead of " << double(wanted);
  }
  void expect_gaps(host_operand before, host_operand &now) {
    for (std::int64_t c = 0; c < now.cols; ++c)
      ASSERT_EQ(0, std::memcmp(before.at(0, now.rows, c), now.at(0, now.rows, c),
                               std::size_t((now.ld - now.rows) * size_of(now.type))))
          << "a gap was written";
  }

  void attempt(const cell_case &f);
  void attempt_reset(const cell_case &f);
  void attempt_backward(const cell_case &f);

  stream stream_{dev()};
  std::mt19937_64 random_{6};
};

void cells::attempt(const cell_case &f) {
  const sg_dtype wide = accumulator_of(f.type);
  host_operand row = random_matrix(wide, 5 * f.hidden, f), next = random_matrix(wide, f.hidden, f),
               y = random_matrix(f.type, f.hidden, f);
  host_operand before = row, next_before = next, y_before = y;
  placed at_row(dev(), stream_, row), at_next(dev(), stream_, next), at_y(dev(), stream_, y);
  auto what = backend_command<sg_backend_cell>();
  what.hidden = f.hidden, what.batch = f.batch, what.cell = f.cell, what.type = f.type, what.keeps = f.keeps;
  const auto gates = gate_blocks(f.cell, f.order);
  std::copy(gates.begin(), gates.end(), what.gates);
  what.row = at_row.data(), what.row_ld = row.ld;
  if (f.has_next) what.next = at_next.data(), what.next_ld = next.ld;
  if (f.in_place) what.next = at_row.data() + 4 * f.hidden * size_of(wide), what.next_ld = row.ld;
  what.y = at_y.data(), what.y_ld = y.ld;
  run(what);
  for (placed *each : {&at_row, &at_next, &at_y}) each->read(stream_);
  for (std::int64_t j = 0; j < f.batch; ++j)
    for (std::int64_t i = 0; i < f.hidden; ++i) {
      const auto sum = [&](int gate) { return value(before, gates[std::size_t(gate)] * f.hidden + i, j); };
      const real state = value(before, 4 * f.hidden + i, j);
      real after, h, kept[4];
      if (f.cell == SG_CELL_LSTM) {
        kept[0] = sigmoid(sum(0)), kept[1] = sigmoid(sum(1)), kept[2] = std::tanh(sum(2)), kept[3] = sigmoid(sum(3));
        after = kept[1] * state + kept[0] * kept[2];
        h = kept[3] * std::tanh(after);
      } else {
        kept[1] = sigmoid(sum(1)), kept[2] = sigmoid(sum(2)), kept[3] = sum(3);
        kept[0] = std::tanh(sum(0) + (f.cell == SG_CELL_GRU ? kept[1] : 1) * sum(3));
        after = h = (1 - kept[2]) * kept[0] + kept[2] * state;
      }
      expect_near(h, value(y, i, j), f.type, f, "y");
      if (f.has_next && !f.in_place) expect_near(after, value(next, i, j), wide, f, "the next state");
      for (int gate = 0; gate < 4; ++gate)
        expect_near(f.keeps ? kept[gate] : sum(gate), value(row, gates[std::size_t(gate)] * f.hidden + i, j), wide, f,
                    "a gate");
      expect_near(f.in_place ? after : state, value(row, 4 * f.hidden + i, j), wide, f, "the state");
      if (HasFatalFailure()) return;
    }
  expect_gaps(before, row), expect_gaps(next_before, next), expect_gaps(y_before, y);
}

void cells::attempt_reset(const cell_case &f) {
  const sg_dtype wide = accumulator_of(f.type);
  host_operand row = random_matrix(wide, 5 * f.hidden, f), y = random_matrix(f.type, f.hidden, f);
  host_operand before = row, y_before = y;
  placed at_row(dev(), stream_, row), at_y(dev(), stream_, y);
  auto what = backend_command<sg_backend_cell>();
  what.hidden = f.hidden, what.batch = f.batch, what.cell = f.cell, what.type = f.type;
  what.step = SG_BACKEND_CELL_RESET;
  const auto gates = gate_blocks(f.cell, f.order);
  std::copy(gates.begin(), gates.end(), what.gates);
  what.row = at_row.data(), what.row_ld = row.ld, what.y = at_y.data(), what.y_ld = y.ld;
  run(what);
  at_row.read(stream_), at_y.read(stream_);
  EXPECT_EQ(before.bytes, row.bytes);
  for (std::int64_t j = 0; j < f.batch; ++j)
    for (std::int64_t i = 0; i < f.hidden; ++i) {
      const real reset = sigmoid(value(before, gates[1] * f.hidden + i, j));
      expect_near(reset * value(before, 4 * f.hidden + i, j), value(y, i, j), f.type, f, "the reset state");
      if (HasFatalFailure()) return;
    }
  expect_gaps(y_before, y);
}

void cells::attempt_backward(const cell_case &f) {
  const sg_dtype wide = accumulator_of(f.type);
  host_operand row = random_matrix(wide, 5 * f.hidden, f), dh = random_matrix(wide, f.hidden, f),
               dstate = random_matrix(wide, f.hidden, f), dgates = random_matrix(f.type, 4 * f.hidden, f);
  host_operand before = dstate, dgates_before = dgates;
  placed at_row(dev(), stream_, row), at_dh(dev(), stream_, dh), at_dstate(dev(), stream_, dstate),
      at_dgates(dev(), stream_, dgates);
  auto what = backend_command<sg_backend_cell_backward>();
  what.hidden = f.hidden, what.batch = f.batch, what.cell = f.cell, what.type = f.type;
  const auto gates = gate_blocks(f.cell, f.order);
  std::copy(gates.begin(), gates.end(), what.gates);
  what.row = at_row.data(), what.row_ld = row.ld, what.dh = at_dh.data(), what.dh_ld = dh.ld;
  if (f.has_next || f.cell == SG_CELL_LSTM) what.dstate = at_dstate.data(), what.dstate_ld = dstate.ld;
  what.dgates = at_dgates.data(), what.dgates_ld = dgates.ld;
  run(what);
  for (placed *each : {&at_dstate, &at_dgates}) each->read(stream_);
  for (std::int64_t j = 0; j < f.batch; ++j)
    for (std::int64_t i = 0; i < f.hidden; ++i) {
      const auto gate = [&](int index) { return value(row, gates[std::size_t(index)] * f.hidden + i, j); };
      const real state = value(row, 4 * f.hidden + i, j), d = value(dh, i, j), kept = value(before, i, j);
      real wanted[4], left;
      if (f.cell == SG_CELL_LSTM) {
        const real in = gate(0), forget = gate(1), g = gate(2), out = gate(3), t = std::tanh(forget * state + in * g);
        const real dc = kept + d * out * (1 - t * t);
        wanted[0] = dc * g * in * (1 - in), wanted[1] = dc * state * forget * (1 - forget);
        wanted[2] = dc * in * (1 - g * g), wanted[3] = d * t * out * (1 - out);
        left = dc * forget;
      } else {
        const real n = gate(0), reset = gate(1), z = gate(2);
        wanted[0] = d * (1 - z) * (1 - n * n), wanted[1] = wanted[0] * gate(3) * reset * (1 - reset);
        wanted[2] = d * (state - n) * z * (1 - z), wanted[3] = wanted[0] * reset;
        left = f.has_next ? kept + d * z : kept;
      }
      for (int index = 0; index < 4; ++index)
        expect_near(wanted[index], value(dgates, gates[std::size_t(index)] * f.hidden + i, j), f.type, f,
                    "a gate's gradient");
      expect_near(left, value(dstate, i, j), wide, f, "the state's gradient");
      if (HasFatalFailure()) return;
    }
  expect_gaps(before, dstate), expect_gaps(dgates_before, dgates);
}

TEST_P(cells, every_cell_and_size) {
  sweep all;
  for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16})
    for (const sg_gate_order order : {SG_GATE_ORDER_DEFAULT, SG_GATE_ORDER_ONNX})
      for (const std::int64_t hidden : {1, 7, 64, 513})
        for (const std::int64_t batch : {1, 5})
          for (const std::int64_t gap : {0, 3})
            for (const bool has_next : {false, true}) {
              if (!all.tries_next()) continue;
              for (const sg_cell cell : {SG_CELL_LSTM, SG_CELL_GRU, SG_CELL_GRU_RESET_BEFORE})
                for (const bool keeps : {false, true}) {
                  attempt({cell, order, type, hidden, batch, gap, keeps, has_next, has_next && gap > 0});
                  if (HasFailure()) return;
                }
              attempt_reset({SG_CELL_GRU_RESET_BEFORE, order, type, hidden, batch, gap, false, false, false});
              for (const sg_cell cell : {SG_CELL_LSTM, SG_CELL_GRU})
                attempt_backward({cell, order, type, hidden, batch, gap, true, has_next, false});
              if (HasFailure()) return;
            }
}

SG_CONFORMANCE(cells);

}  // namespace
}  // namespace sg::test
