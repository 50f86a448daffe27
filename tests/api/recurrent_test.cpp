// SPDX-License-Identifier: Apache-2.0
// Recurrent layers and their gradients: every cell, type and layout against extended precision, gradients against
// central differences, order, graphs, refused calls.
#include <algorithm>
#include <cstring>

#include "support/recurrent_model.hpp"

namespace sg_test {
namespace {

using long_double = long double;
using vector = std::vector<long_double>;

// Steps of sequences in memory: step by step, or sequence by sequence, with gaps.
struct sequence_form {
  bool batch_major;
  std::int64_t gap;

  sg_sequence strides(const recurrent_shape &s, std::int64_t width) const {
    const std::int64_t row = std::max<std::int64_t>(1, width) + gap;
    return batch_major ? sg_sequence{nullptr, row, s.steps * row + gap} : sg_sequence{nullptr, s.batch * row, row};
  }
};

long_double tolerance(sg_dtype type) {
  switch (type) {
    case SG_DTYPE_F64: return 1e-8L;
    case SG_DTYPE_F32: return 5e-5L;
    case SG_DTYPE_F16: return 1e-2L;
    default: return 8e-2L;
  }
}

void expect_near(const char *name, const vector &wanted, const vector &found, long_double error) {
  ASSERT_EQ(wanted.size(), found.size()) << name;
  long_double most = 1;
  for (const long_double each : wanted) most = std::max(most, std::abs(each));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_LE(std::abs(wanted[i] - found[i]), error * most)
        << name << " " << i << ": " << found[i] << " not " << wanted[i];
}

// A layer with random operands.
struct layer {
  layer(sg_context *on, random_source &random, const recurrent_shape &shape, sg_dtype type, const sequence_form &form,
        std::int64_t state_gap)
      : on(on),
        s(shape),
        type(type),
        form(form),
        state_gap(state_gap),
        x(sequence(s.in)),
        y(sequence(s.hidden)),
        w_ih(flat(type, s.gates() * s.hidden, s.in)),
        w_hh(flat(type, s.gates() * s.hidden, s.hidden)),
        bias_ih(flat(type, 1, s.gates() * s.hidden)),
        bias_hh(flat(type, 1, s.gates() * s.hidden)),
        h0(state()),
        c0(state()),
        hn(state()),
        cn(state()) {
    for (strided_values *each : {&x, &w_ih, &w_hh, &bias_ih, &bias_hh, &h0, &c0}) each->randomise(random, 0.8);
    desc.cell = s.cell, desc.gate_order = s.order;
    desc.steps = s.steps, desc.batch = s.batch, desc.inputs = s.in, desc.hidden = s.hidden;
    desc.x = form.strides(s, s.in), desc.y = form.strides(s, s.hidden);
    desc.x.data = x.data(), desc.y.data = y.data();
    desc.w_ih = w_ih.data(), desc.w_hh = w_hh.data();
    desc.bias_ih = bias_ih.data(), desc.bias_hh = bias_hh.data();
    desc.h0 = h0.data(), desc.hn = hn.data();
    if (s.cell == SG_CELL_LSTM) desc.c0 = c0.data(), desc.cn = cn.data();
    desc.state_stride = s.hidden + state_gap;
    desc.dtype = type, desc.reverse = s.reverse;
  }
  strided_values sequence(std::int64_t width) const {
    const sg_sequence strides = form.strides(s, width);
    return {on, type, s.steps, strides.step_stride, s.batch, strides.batch_stride, width};
  }
  strided_values state() const { return {on, type, 1, 0, s.batch, s.hidden + state_gap, s.hidden}; }
  strided_values flat(sg_dtype of, std::int64_t rows, std::int64_t cols) const {
    return {on, of, 1, 0, rows, cols, cols};
  }
  void allocate_reserve() {
    std::uint64_t bytes = 0;
    ASSERT_OK(sg_recurrent_reserve_size(&desc, &bytes));
    ASSERT_EQ(std::uint64_t(5 * s.steps * s.batch * s.hidden) * (type == SG_DTYPE_F64 ? 8 : 4), bytes);
    reserve = operand_memory(on, bytes);
    desc.reserve = reserve.data();
  }
  recurrent_values values() {
    const auto of = [](const void *given, strided_values &from) { return given ? from.get() : vector(); };
    return {x.get(),         w_ih.get(),     w_hh.get(), of(desc.bias_ih, bias_ih), of(desc.bias_hh, bias_hh),
            of(desc.h0, h0), of(desc.c0, c0)};
  }
  void check() {
    ASSERT_OK(sg_recurrent(on, &desc, nullptr));
    for (strided_values *each : {&y, &hn, &cn}) each->fetch();
    const recurrent_results wanted = run_recurrent(s, values(), type, true);
    expect_near("y", wanted.y, y.get(), tolerance(type));
    expect_near("hn", wanted.hn, hn.get(), tolerance(type));
    if (desc.cn) expect_near("cn", wanted.cn, cn.get(), tolerance(type));
  }

  sg_context *on;
  recurrent_shape s;
  sg_dtype type;
  sequence_form form;
  std::int64_t state_gap;
  strided_values x, y, w_ih, w_hh, bias_ih, bias_hh, h0, c0, hn, cn;
  operand_memory reserve;
  sg_recurrent_desc desc = SG_RECURRENT_DESC_INIT;
};

class recurrent : public on_each_device {
 protected:
  recurrent_shape any_shape(int cells) {
    const auto size = [&](int most) { return std::int64_t(random_.below(4) == 0 ? 1 : 1 + random_.below(most)); };
    recurrent_shape s;
    s.cell = sg_cell(random_.below(cells)), s.order = sg_gate_order(random_.below(2));
    s.steps = size(7), s.batch = size(4), s.in = random_.below(9) == 0 ? 0 : size(5), s.hidden = size(6);
    s.reverse = random_.below(2);
    return s;
  }
  sequence_form any_form() { return {random_.below(2) == 1, random_.below(2) * random_.below(4)}; }
  std::string text(const recurrent_shape &s, sg_dtype type, const sequence_form &form) {
    std::ostringstream out;
    out << std::boolalpha << "cell " << s.cell << " order " << s.order << " type " << type << " " << s.steps
        << " steps of " << s.batch << " x " << s.in << " to " << s.hidden << (s.reverse ? " reverse" : "")
        << (form.batch_major ? " batch major" : "") << " gap " << form.gap;
    return out.str();
  }
  void check_gradients(const recurrent_shape &s, sg_dtype type, const sequence_form &form, bool wide_gradients,
                       bool accumulates);

  random_source random_{4};
  static constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
};

TEST_P(recurrent, every_cell_type_and_layout) {
  for (int turn = 0; turn < 160; ++turn) {
    const recurrent_shape s = any_shape(3);
    const sg_dtype type = types[turn % 4];
    const sequence_form form = any_form();
    SCOPED_TRACE(text(s, type, form));
    layer one(context_, random_, s, type, form, random_.below(2) * 3);
    if (random_.below(3) == 0) one.desc.bias_ih = nullptr;
    if (random_.below(3) == 0) one.desc.bias_hh = nullptr;
    if (random_.below(3) == 0) one.desc.h0 = nullptr;
    if (random_.below(3) == 0) one.desc.c0 = nullptr;
    if (random_.below(2)) one.allocate_reserve();
    one.check();
    if (HasFailure()) return;
  }
}

TEST_P(recurrent, many_sequences_and_steps) {
  for (const sg_cell cell : {SG_CELL_LSTM, SG_CELL_GRU})
    for (const bool batch_major : {false, true}) {
      layer one(context_, random_, {cell, SG_GATE_ORDER_DEFAULT, 40, 24, 32, 48, batch_major}, SG_DTYPE_F32,
                {batch_major, 0}, 0);
      one.check();
    }
}

// The halves of Y's rows, and the state of one call as the next one's.
TEST_P(recurrent, both_directions_and_states_in_place) {
  const recurrent_shape s{SG_CELL_GRU, SG_GATE_ORDER_DEFAULT, 5, 2, 3, 4, false};
  layer forward(context_, random_, s, SG_DTYPE_F64, {false, 0}, 0);
  strided_values y(context_, SG_DTYPE_F64, 5, 16, 2, 8, 8);
  forward.desc.y = {y.data(), 16, 8};
  sg_recurrent_desc backward = forward.desc;
  backward.reverse = 1, backward.hn = nullptr;
  backward.y.data = static_cast<double *>(y.data()) + 4;
  ASSERT_OK(sg_recurrent_async(context_, &forward.desc, nullptr, nullptr));
  ASSERT_OK(sg_recurrent_async(context_, &backward, nullptr, nullptr));
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  y.fetch();
  const vector found = y.get();
  recurrent_shape other = s;
  other.reverse = true;
  const vector wanted[] = {run_recurrent(s, forward.values(), SG_DTYPE_F64, false).y,
                           run_recurrent(other, forward.values(), SG_DTYPE_F64, false).y};
  for (std::size_t row = 0; row < 10; ++row)
    for (std::size_t k = 0; k < 8; ++k)
      ASSERT_LE(std::abs(found[row * 8 + k] - wanted[k / 4][row * 4 + k % 4]), 1e-12L) << row << " " << k;

  const recurrent_shape lstm{SG_CELL_LSTM, SG_GATE_ORDER_DEFAULT, 3, 2, 3, 4, false};
  layer first(context_, random_, lstm, SG_DTYPE_F64, {false, 0}, 0);
  const recurrent_results after = run_recurrent(lstm, first.values(), SG_DTYPE_F64, false);
  first.desc.hn = first.h0.data(), first.desc.cn = first.c0.data();
  ASSERT_OK(sg_recurrent(context_, &first.desc, nullptr));
  first.h0.fetch(), first.c0.fetch();
  expect_near("h0", after.hn, first.h0.get(), 1e-12L);
  expect_near("c0", after.cn, first.c0.get(), 1e-12L);
}

void recurrent::check_gradients(const recurrent_shape &s, sg_dtype type, const sequence_form &form, bool wide_gradients,
                                bool accumulates) {
  const sg_dtype of_weights = wide_gradients && type != SG_DTYPE_F64 ? SG_DTYPE_F32 : type;
  layer one(context_, random_, s, type, form, random_.below(2) * 2);
  if (random_.below(4) == 0) one.desc.h0 = nullptr;
  one.allocate_reserve();
  ASSERT_OK(sg_recurrent(context_, &one.desc, nullptr));
  strided_values dy = one.sequence(s.hidden), dx = one.sequence(s.in), dhn = one.state(), dcn = one.state(),
                 dh0 = one.state(), dc0 = one.state();
  strided_values dw_ih = one.flat(of_weights, s.gates() * s.hidden, s.in),
                 dw_hh = one.flat(of_weights, s.gates() * s.hidden, s.hidden),
                 dbias_ih = one.flat(of_weights, 1, s.gates() * s.hidden),
                 dbias_hh = one.flat(of_weights, 1, s.gates() * s.hidden);
  for (strided_values *each : {&dy, &dhn, &dcn, &dw_ih, &dw_hh, &dbias_ih, &dbias_hh}) each->randomise(random_, 0.5);
  sg_recurrent_backward_desc desc = SG_RECURRENT_BACKWARD_DESC_INIT;
  desc.cell = s.cell, desc.gate_order = s.order;
  desc.steps = s.steps, desc.batch = s.batch, desc.inputs = s.in, desc.hidden = s.hidden;
  desc.x = one.desc.x, desc.y = one.desc.y;
  desc.w_ih = one.desc.w_ih, desc.w_hh = one.desc.w_hh, desc.h0 = one.desc.h0, desc.reserve = one.desc.reserve;
  const bool is_lstm = s.cell == SG_CELL_LSTM;
  if (random_.below(5) > 0) desc.dy = one.desc.y, desc.dy.data = dy.data();
  if (random_.below(2)) desc.dhn = dhn.data();
  if (is_lstm && random_.below(2)) desc.dcn = dcn.data();
  if (random_.below(4) > 0) desc.dx = one.desc.x, desc.dx.data = dx.data();
  if (random_.below(4) > 0) desc.dw_ih = dw_ih.data();
  if (random_.below(4) > 0) desc.dw_hh = dw_hh.data();
  if (random_.below(4) > 0) desc.dbias_ih = dbias_ih.data();
  if (random_.below(4) > 0) desc.dbias_hh = dbias_hh.data();
  if (random_.below(3) > 0 && desc.h0) desc.dh0 = dh0.data();
  if (is_lstm && random_.below(3) > 0) desc.dc0 = dc0.data();
  desc.state_stride = one.desc.state_stride, desc.dtype = type, desc.gradient_dtype = of_weights;
  desc.reverse = s.reverse, desc.accumulate = accumulates;
  const vector before[] = {dw_ih.get(), dw_hh.get(), dbias_ih.get(), dbias_hh.get()};
  ASSERT_OK(sg_recurrent_backward(context_, &desc, nullptr));

  recurrent_values values = one.values();
  const auto given = [](const void *data, strided_values &from) { return data ? from.get() : vector(); };
  const vector of_y = given(desc.dy.data, dy), of_hn = given(desc.dhn, dhn), of_cn = given(desc.dcn, dcn);
  const auto loss = [&] {
    const recurrent_results now = run_recurrent(s, values, type, false);
    long_double sum = 0;
    for (const auto &[of, results] : {std::pair{&of_y, &now.y}, {&of_hn, &now.hn}, {&of_cn, &now.cn}})
      for (std::size_t i = 0; i < of->size(); ++i) sum += (*of)[i] * (*results)[i];
    return sum;
  };
  const auto check = [&](const char *name, const void *data, strided_values &found, vector recurrent_values::*of,
                         const vector *added) {
    if (!data) return;
    vector wanted = difference_gradient(values.*of, loss);
    for (std::size_t i = 0; accumulates && added && i < wanted.size(); ++i) wanted[i] += (*added)[i];
    found.fetch();
    expect_near(name, wanted, found.get(), 3 * tolerance(type));
  };
  check("dx", desc.dx.data, dx, &recurrent_values::x, nullptr);
  check("dw_ih", desc.dw_ih, dw_ih, &recurrent_values::w_ih, &before[0]);
  check("dw_hh", desc.dw_hh, dw_hh, &recurrent_values::w_hh, &before[1]);
  check("dbias_ih", desc.dbias_ih, dbias_ih, &recurrent_values::bias_ih, &before[2]);
  check("dbias_hh", desc.dbias_hh, dbias_hh, &recurrent_values::bias_hh, &before[3]);
  check("dh0", desc.dh0, dh0, &recurrent_values::h0, nullptr);
  check("dc0", desc.dc0, dc0, &recurrent_values::c0, nullptr);
}

TEST_P(recurrent, gradients_are_central_differences) {
  for (int turn = 0; turn < 100; ++turn) {
    const recurrent_shape s = any_shape(2);
    const sg_dtype type = types[turn % 4];
    const sequence_form form = any_form();
    SCOPED_TRACE(text(s, type, form));
    check_gradients(s, type, form, random_.below(2), random_.below(2));
    if (HasFailure()) return;
  }
}

TEST_P(recurrent, empty_layers_pass_their_states_on) {
  layer one(context_, random_, {SG_CELL_LSTM, SG_GATE_ORDER_DEFAULT, 0, 2, 3, 4, false}, SG_DTYPE_F32, {false, 0}, 0);
  one.desc.y.data = one.desc.x.data = nullptr;
  ASSERT_OK(sg_recurrent(context_, &one.desc, nullptr));
  one.hn.fetch(), one.cn.fetch();
  EXPECT_EQ(one.h0.get(), one.hn.get());
  EXPECT_EQ(one.c0.get(), one.cn.get());
  one.desc.h0 = nullptr, one.desc.cn = nullptr;
  ASSERT_OK(sg_recurrent(context_, &one.desc, nullptr));
  one.hn.fetch();
  EXPECT_EQ(vector(8), one.hn.get());
  for (std::int64_t sg_recurrent_desc::*each : {&sg_recurrent_desc::batch, &sg_recurrent_desc::hidden}) {
    sg_recurrent_desc empty = one.desc;
    empty.steps = 3, empty.*each = 0, empty.x.step_stride = empty.y.step_stride = 20;
    EXPECT_OK(sg_recurrent(context_, &empty, nullptr));
  }

  strided_values dw = one.flat(SG_DTYPE_F32, 16, 4), dhn = one.state(), dh0 = one.state();
  dw.randomise(random_, 1), dhn.randomise(random_, 1);
  sg_recurrent_backward_desc desc = SG_RECURRENT_BACKWARD_DESC_INIT;
  desc.batch = 2, desc.inputs = 3, desc.hidden = 4;
  ASSERT_OK(sg_recurrent_backward(context_, &desc, nullptr));
  desc.dw_hh = dw.data(), desc.dhn = dhn.data(), desc.dh0 = dh0.data(), desc.accumulate = 1;
  const vector before = dw.get();
  ASSERT_OK(sg_recurrent_backward(context_, &desc, nullptr));
  dw.fetch(), dh0.fetch();
  EXPECT_EQ(before, dw.get());
  EXPECT_EQ(dhn.get(), dh0.get());
  desc.accumulate = 0;
  ASSERT_OK(sg_recurrent_backward(context_, &desc, nullptr));
  dw.fetch();
  EXPECT_EQ(vector(64), dw.get());
}

TEST_P(recurrent, is_recorded_in_a_graph_and_updated) {
  const recurrent_shape s{SG_CELL_LSTM, SG_GATE_ORDER_DEFAULT, 3, 2, 3, 4, false};
  layer one(context_, random_, s, SG_DTYPE_F32, {false, 0}, 0), two(context_, random_, s, SG_DTYPE_F32, {false, 0}, 0);
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  ASSERT_OK(sg_recurrent_async(context_, &one.desc, &record, nullptr));
  const auto run = [&] {
    job handle;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  };
  run();
  one.y.fetch();
  expect_near("y", run_recurrent(s, one.values(), SG_DTYPE_F32, true).y, one.y.get(), 1e-5L);
  sg_recurrent_desc changed = two.desc;
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_RECURRENT, update.desc = &changed;
  ASSERT_OK(sg_graph_update(graph, 0, &update));
  run();
  two.y.fetch();
  expect_near("y", run_recurrent(s, two.values(), SG_DTYPE_F32, true).y, two.y.get(), 1e-5L);
  changed.gate_order = SG_GATE_ORDER_ONNX;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "operation->desc differs from submission 0"))
      << sg_last_error_message();
  changed.gate_order = SG_GATE_ORDER_DEFAULT, changed.bias_ih = nullptr;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(recurrent, is_ordered_by_its_operands_and_cancelled) {
  const recurrent_shape s{SG_CELL_GRU, SG_GATE_ORDER_DEFAULT, 2, 1, 2, 3, false};
  layer first(context_, random_, s, SG_DTYPE_F64, {false, 0}, 0),
      second(context_, random_, s, SG_DTYPE_F64, {false, 0}, 0);
  second.desc.h0 = first.desc.hn;
  ASSERT_OK(sg_recurrent_async(context_, &first.desc, nullptr, nullptr));
  ASSERT_OK(sg_recurrent(context_, &second.desc, nullptr));
  recurrent_values values = second.values();
  values.h0 = run_recurrent(s, first.values(), SG_DTYPE_F64, false).hn;
  second.y.fetch();
  expect_near("y", run_recurrent(s, values, SG_DTYPE_F64, false).y, second.y.get(), 1e-12L);
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const before = gated.get();
  sg_submit behind = SG_SUBMIT_INIT;
  behind.after = &before, behind.after_count = 1;
  job handle;
  ASSERT_OK(sg_recurrent_async(context_, &second.desc, &behind, handle.out()));
  ASSERT_OK(sg_job_cancel(handle));
  gated.open();
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(handle, SG_FOREVER, nullptr));
}

TEST_P(recurrent, wrong_calls_name_the_field) {
  const recurrent_shape s{SG_CELL_LSTM, SG_GATE_ORDER_DEFAULT, 2, 2, 3, 4, false};
  layer one(context_, random_, s, SG_DTYPE_F64, {false, 0}, 0);
  one.allocate_reserve();
  double host[64] = {};
  using d = sg_recurrent_desc;
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT;
  const auto says = [](const char *part) {
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message() << " without " << part;
  };
  const auto bad = [&](sg_status wanted, const char *part, const std::function<void(d &)> &spoil) {
    d desc = one.desc;
    spoil(desc);
    EXPECT_STATUS(wanted, sg_recurrent(context_, &desc, nullptr));
    says(part);
  };
  bad(invalid, "desc->struct_size", [](d &x) { x.struct_size = 8; });
  bad(invalid, "desc->cell is 3", [](d &x) { x.cell = sg_cell(3); });
  bad(invalid, "desc->gate_order is 2", [](d &x) { x.gate_order = sg_gate_order(2); });
  bad(invalid, "desc->steps is -1", [](d &x) { x.steps = -1; });
  bad(invalid, "desc->hidden is -2", [](d &x) { x.hidden = -2; });
  bad(invalid, "desc->reverse is 2", [](d &x) { x.reverse = 2; });
  bad(invalid, "desc->reserved is 1", [](d &x) { x.reserved = 1; });
  bad(invalid, "desc->compute is 1", [](d &x) { x.compute = sg_compute(1); });
  bad(invalid, "desc->state_stride is 3; a state has 4", [](d &x) { x.state_stride = 3; });
  bad(invalid, "desc->x.step_stride is 2; a step has 3", [](d &x) { x.x.step_stride = 2; });
  bad(invalid, "desc->y.batch_stride is -1", [](d &x) { x.y.batch_stride = -1; });
  bad(invalid, "steps of desc->y overlap: its strides are 4 and 4", [](d &x) { x.y.step_stride = 4; });
  bad(invalid, "desc->x.data is NULL", [](d &x) { x.x.data = nullptr; });
  bad(invalid, "desc->w_hh is NULL", [](d &x) { x.w_hh = nullptr; });
  bad(invalid, "desc->c0 is given; a GRU has no state c", [](d &x) { x.cell = SG_CELL_GRU; });
  bad(invalid, "overlap", [](d &x) { x.cn = x.hn; });
  bad(invalid, "desc->w_hh (", [](d &x) { x.y.data = const_cast<void *>(x.w_hh); });
  bad(invalid, "which is not aligned", [](d &x) { x.h0 = static_cast<const char *>(x.h0) + 4; });
  bad(SG_STATUS_UNSUPPORTED, "desc->dtype is c64", [](d &x) { x.dtype = SG_DTYPE_C64; });
  EXPECT_STATUS(invalid, sg_recurrent(context_, nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_recurrent(reinterpret_cast<sg_context *>(1), &one.desc, nullptr));
  std::uint64_t bytes = 1;
  EXPECT_STATUS(invalid, sg_recurrent_reserve_size(nullptr, &bytes));
  EXPECT_EQ(0u, bytes);
  d large = one.desc;
  large.steps = large.batch = large.hidden = std::int64_t(1) << 40;
  EXPECT_STATUS(invalid, sg_recurrent_reserve_size(&large, &bytes));

  strided_values dw = one.flat(SG_DTYPE_F64, 16, 4);
  using b = sg_recurrent_backward_desc;
  const auto bad_backward = [&](sg_status wanted, const char *part, const std::function<void(b &)> &spoil) {
    b desc = SG_RECURRENT_BACKWARD_DESC_INIT;
    desc.steps = desc.batch = 2, desc.inputs = 3, desc.hidden = 4;
    desc.x = one.desc.x, desc.y = one.desc.y, desc.w_ih = one.desc.w_ih, desc.w_hh = one.desc.w_hh;
    desc.reserve = one.desc.reserve, desc.dw_hh = dw.data();
    desc.dtype = desc.gradient_dtype = SG_DTYPE_F64;
    spoil(desc);
    EXPECT_STATUS(wanted, sg_recurrent_backward(context_, &desc, nullptr));
    says(part);
  };
  bad_backward(invalid, "desc->reserve is NULL", [](b &x) { x.reserve = nullptr; });
  bad_backward(invalid, "desc->accumulate is 2", [](b &x) { x.accumulate = 2; });
  bad_backward(invalid, "desc->gradient_dtype is f32", [](b &x) { x.gradient_dtype = SG_DTYPE_F32; });
  bad_backward(invalid, "desc->dc0 is given; a GRU has no state c", [&](b &x) { x.cell = SG_CELL_GRU, x.dc0 = host; });
  bad_backward(invalid, "overlap", [](b &x) { x.dw_hh = const_cast<void *>(x.w_hh); });
  bad_backward(SG_STATUS_UNSUPPORTED, "desc->cell is 2", [](b &x) { x.cell = SG_CELL_GRU_RESET_BEFORE; });
}

ON_EACH_DEVICE(recurrent);

}  // namespace
}  // namespace sg_test
