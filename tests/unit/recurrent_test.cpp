// SPDX-License-Identifier: Apache-2.0
// Schedules of recurrent layers: free of hazards, each step of each result written once, for any layout; their size.
#include "plan/layers/recurrent.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>

#include "base/error.hpp"
#include "plan/schedule/hazard.hpp"
#include "problems.hpp"

namespace sg::test {
namespace {

using which = recurrent_operand;

sequence_strides any_strides(std::mt19937 &random, const recurrent_form &f, std::int64_t width) {
  const auto gap = [&] { return random() % 3 == 0 ? std::int64_t(random() % 4) : 0; };
  const std::int64_t row = width + gap();
  return random() % 2 ? sequence_strides{f.batch * row + gap(), row} : sequence_strides{row, f.steps * row + gap()};
}

recurrent_form any_form(std::mt19937 &random, bool backward) {
  const auto size = [&](std::int64_t most) { return std::int64_t(1 + random() % std::uint32_t(most)); };
  constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
  recurrent_form f;
  f.cell = sg_cell(random() % (backward ? 2 : 3)), f.order = sg_gate_order(random() % 2);
  f.steps = size(9), f.batch = size(6), f.in = size(6) - 1, f.hidden = size(40);
  f.type = types[random() % 4], f.gradient_type = random() % 2 ? f.type : accumulator_of(f.type);
  f.x = any_strides(random, f, f.in), f.dx = any_strides(random, f, f.in);
  f.y = any_strides(random, f, f.hidden), f.dy = any_strides(random, f, f.hidden);
  f.state_stride = f.hidden + std::int64_t(random() % 3);
  f.reverse = random() % 2, f.accumulate = random() % 2;
  for (const which each : {which::x, which::w_ih, which::w_hh, which::y}) f.give(each);
  if (backward) f.give(which::reserve);
  for (int i = 0; i < recurrent_operands; ++i) {
    const bool is_of_c =
        which(i) == which::c0 || which(i) == which::cn || which(i) == which::dcn || which(i) == which::dc0;
    if (random() % 2 && (f.is_lstm() || !is_of_c)) f.give(which(i));
  }
  return f;
}

std::string text(const recurrent_form &f) {
  std::ostringstream out;
  out << "cell " << f.cell << " " << name_of(f.type) << " " << f.steps << " x " << f.batch << ", " << f.in << " to "
      << f.hidden << " given " << std::hex << f.given << std::dec << " reverse " << f.reverse << " x " << f.x.step
      << " " << f.x.batch << " y " << f.y.step << " " << f.y.batch;
  return out.str();
}

// By the offset of its first element: how often each row of a sequence is written.
std::map<std::int64_t, int> writes_of(const schedule &s, which operand) {
  std::map<std::int64_t, int> writes;
  const buffer &b = s.buffers[std::size_t(operand)];
  for (const command &c : s.commands)
    for (const accessed_view &v : c.views) {
      if (v.buffer != std::int32_t(operand) || v.mode != access_mode::write) continue;
      for (std::int64_t item = v.item; item < v.item + v.items; ++item)
        for (std::int64_t row = 0; row < v.cols; ++row)
          ++writes[(item * b.item_stride + v.offset) / size_of(b.type) + row * v.ld];
    }
  return writes;
}

std::map<std::int64_t, int> rows_of(const recurrent_form &f, const sequence_strides &strides) {
  std::map<std::int64_t, int> rows;
  for (std::int64_t t = 0; t < f.steps; ++t)
    for (std::int64_t b = 0; b < f.batch; ++b) rows[t * strides.step + b * strides.batch] = 1;
  return rows;
}

// Lanes are used for as little work as there is.
device_model quick_cores(int count) {
  device_model m = cores(count);
  m.launch_latency = 1e-9;
  return m;
}

void expect_sound(const schedule &s, const recurrent_form &f, int lanes) {
  const auto hazards = check_hazards(s);
  ASSERT_TRUE(hazards.empty()) << text(f) << ": " << hazards.front().text;
  EXPECT_LE(s.lanes[int(lane_kind::compute)], lanes);
  EXPECT_LT(0, s.predicted_seconds) << text(f);
}

TEST(recurrent, every_form_is_sound) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 4000; ++turn) {
    const recurrent_form f = any_form(random, false);
    const schedule s = build_recurrent(f, turn % 2 ? h200() : quick_cores(3), 3);
    expect_sound(s, f, 3);
    EXPECT_EQ(rows_of(f, f.y), writes_of(s, which::y)) << text(f);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(recurrent, every_form_of_the_gradients_is_sound) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 4000; ++turn) {
    const recurrent_form f = any_form(random, true);
    const schedule s = build_recurrent_backward(f, turn % 2 ? h200() : quick_cores(3), 3);
    expect_sound(s, f, 3);
    if (f.has(which::dx) && f.in > 0) {
      EXPECT_EQ(rows_of(f, f.dx), writes_of(s, which::dx)) << text(f);
    }
    if (testing::Test::HasFailure()) return;
  }
}

recurrent_form dense(sg_cell cell, std::int64_t steps, std::int64_t batch, std::int64_t in, std::int64_t hidden) {
  recurrent_form f;
  f.cell = cell, f.steps = steps, f.batch = batch, f.in = in, f.hidden = f.state_stride = hidden;
  f.x = f.dx = {batch * in, in}, f.y = f.dy = {batch * hidden, hidden};
  f.type = SG_DTYPE_BF16, f.gradient_type = SG_DTYPE_F32;
  for (const which each : {which::x, which::w_ih, which::w_hh, which::y}) f.give(each);
  return f;
}

// Of X one product, or two for a GRU with a separate state's part; of each step a product and a cell.
TEST(recurrent, steps_are_two_commands) {
  EXPECT_EQ(1u + 1 + 2 * 100 - 1, build_recurrent(dense(SG_CELL_LSTM, 100, 8, 64, 64), h200(), 1).commands.size());
  EXPECT_EQ(1u + 3 + 2 * 100 - 1, build_recurrent(dense(SG_CELL_GRU, 100, 8, 64, 64), h200(), 1).commands.size());
  EXPECT_EQ(1u + 3 + 4 * 100 - 3,
            build_recurrent(dense(SG_CELL_GRU_RESET_BEFORE, 100, 8, 64, 64), h200(), 1).commands.size());
  recurrent_form f = dense(SG_CELL_LSTM, 100, 8, 64, 64);
  for (const which each : {which::reserve, which::dy, which::dx, which::dw_ih, which::dw_hh}) f.give(each);
  // dY, dc and the states before; a cell and a product of each step; three products.
  EXPECT_EQ(4u + 2 * 100 - 1 + 3, build_recurrent_backward(f, h200(), 1).commands.size());
}

// Rows of the gates are in bounded memory, for any number of steps.
TEST(recurrent, a_long_sequence_stays_in_bounded_memory) {
  const recurrent_form f = dense(SG_CELL_LSTM, 3000, 64, 512, 1024);
  const schedule s = build_recurrent(f, h200(), 1);
  EXPECT_LE(s.device_bytes, std::int64_t(257) << 20);
  EXPECT_TRUE(check_hazards(s).empty());
  recurrent_form reversed = f;
  reversed.reverse = true;
  EXPECT_TRUE(check_hazards(build_recurrent(reversed, h200(), 1)).empty());
}

// Every core has sequences; a small layer has one.
TEST(recurrent, cores_share_the_batch) {
  EXPECT_EQ(8, build_recurrent(dense(SG_CELL_GRU, 20, 64, 64, 128), cores(8), 8).lanes[int(lane_kind::compute)]);
  EXPECT_EQ(1, build_recurrent(dense(SG_CELL_GRU, 2, 8, 8, 16), cores(8), 8).lanes[int(lane_kind::compute)]);
}

TEST(recurrent, too_many_steps_are_refused) {
  try {
    build_recurrent(dense(SG_CELL_GRU, 1'000'000, 1, 8, 8), h200(), 1);
    FAIL();
  } catch (const error &e) {
    EXPECT_EQ(SG_STATUS_OUT_OF_MEMORY, e.status());
  }
}

}  // namespace
}  // namespace sg::test
