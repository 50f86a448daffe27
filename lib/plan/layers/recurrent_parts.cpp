// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/recurrent_parts.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {
namespace {

// On cores, work of less than so many launches is not worth another worker.
constexpr double least_launches_of_lane = 4;

constexpr weight_part lstm_input[] = {{0, 0, 4}}, gru_input[] = {{0, 1, 2}, {2, 0, 1}};

bool items_of_form_are_sequences(const recurrent_form &f) noexcept { return f.steps > f.batch; }

const char *name_of(recurrent_operand x) noexcept {
  static constexpr const char *names[recurrent_operands] = {
      "x",  "w_ih", "w_hh", "h0", "y",     "reserve", "bias_ih", "bias_hh",  "c0",       "hn", "cn",
      "dy", "dhn",  "dcn",  "dx", "dw_ih", "dh0",     "dw_hh",   "dbias_ih", "dbias_hh", "dc0"};
  return names[std::size_t(x)];
}

// Items are steps or sequences.
parameter parameter_for(const recurrent_form &f, recurrent_operand which) {
  const bool by_sequence = items_of_form_are_sequences(f);
  parameter made;
  made.name = name_of(which);
  operand &x = made.stored;
  x.type = type_of(f, which);
  const bool is_sequence = which == recurrent_operand::x || which == recurrent_operand::y ||
                           which == recurrent_operand::dx || which == recurrent_operand::dy;
  if (is_sequence) x.item_stride = by_sequence ? strides_of(f, which).batch : strides_of(f, which).step;
  if (which == recurrent_operand::reserve) x.item_stride = blocks_of_row * f.hidden * (by_sequence ? 1 : f.batch);
  if (!f.has(which)) return made;
  x.rows = bytes_of(f, which) / size_of(x.type), x.cols = 1, x.ld = std::max<std::int64_t>(1, x.rows);
  return made;
}

}  // namespace

sg_dtype type_of(const recurrent_form &f, recurrent_operand which) noexcept {
  switch (which) {
    case recurrent_operand::reserve: return accumulator_of(f.type);
    case recurrent_operand::dw_ih:
    case recurrent_operand::dw_hh:
    case recurrent_operand::dbias_ih:
    case recurrent_operand::dbias_hh: return f.gradient_type;
    default: return f.type;
  }
}

const sequence_strides &strides_of(const recurrent_form &f, recurrent_operand which) noexcept {
  switch (which) {
    case recurrent_operand::x: return f.x;
    case recurrent_operand::dx: return f.dx;
    case recurrent_operand::dy: return f.dy;
    default: return f.y;
  }
}

std::int64_t bytes_of(const recurrent_form &f, recurrent_operand which) {
  const auto product = [](std::int64_t a, std::int64_t b) { return checked_mul(a, b, "an operand"); };
  const auto of_rows = [&](std::int64_t rows, std::int64_t stride, std::int64_t width) {
    return rows == 0 || width == 0 ? 0 : checked_add(product(rows - 1, stride), width, "an operand");
  };
  const std::int64_t rows = product(f.gates(), f.hidden);
  std::int64_t elements = 0;
  switch (which) {
    case recurrent_operand::x:
    case recurrent_operand::y:
    case recurrent_operand::dx:
    case recurrent_operand::dy: {
      const bool is_input = which == recurrent_operand::x || which == recurrent_operand::dx;
      const sequence_strides &strides = strides_of(f, which);
      const std::int64_t of_batch = of_rows(f.batch, strides.batch, is_input ? f.in : f.hidden);
      elements = of_rows(f.steps, strides.step, of_batch);
      break;
    }
    case recurrent_operand::w_ih:
    case recurrent_operand::dw_ih: elements = product(rows, f.in); break;
    case recurrent_operand::w_hh:
    case recurrent_operand::dw_hh: elements = product(rows, f.hidden); break;
    case recurrent_operand::bias_ih:
    case recurrent_operand::bias_hh:
    case recurrent_operand::dbias_ih:
    case recurrent_operand::dbias_hh: elements = rows; break;
    case recurrent_operand::reserve:
      elements = product(product(f.steps, f.batch), product(blocks_of_row, f.hidden));
      break;
    default: elements = of_rows(f.batch, f.state_stride, f.hidden);
  }
  return product(elements, size_of(type_of(f, which)));
}

recurrent_parts::recurrent_parts(const recurrent_form &f, const device_model &model, int lanes, bool backward)
    : f_(f),
      model_(model),
      most_lanes_(model.lanes_are_cores ? lanes : 1),
      items_are_sequences_(items_of_form_are_sequences(f)),
      pending_(std::size_t(most_lanes_)) {
  if (gemm_rate_of(model, f.type, f.compute) <= 0)
    throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s GEMM", model.name.c_str(), name_of(f.type));
  if (f.steps > most_asked_commands / 4)
    throw error(SG_STATUS_OUT_OF_MEMORY, "a recurrent layer of %lld steps would have too many commands",
                static_cast<long long>(f.steps));
  const int count = backward ? recurrent_operands : int(which::dy);
  for (int i = 0; i < count; ++i) builder_.add_parameter(parameter_for(f, which(i)));
}

std::span<const weight_part> recurrent_parts::input_parts() const noexcept {
  return f_.is_lstm() ? std::span<const weight_part>(lstm_input) : gru_input;
}

sequence recurrent_parts::of_operand(which x, std::int64_t width) const noexcept {
  const sequence_strides &strides = strides_of(f_, x);
  return {slot(x), type_of(f_, x), strides.step, strides.batch, width};
}

sequence recurrent_parts::add_sequence(sg_dtype type, std::int64_t width, std::int64_t steps, bool batch_major) {
  sequence x{-1, type, batch_major ? width : f_.batch * width, batch_major ? steps * width : width, width};
  const std::int64_t bytes =
      checked_mul(checked_mul(steps, f_.batch, "steps"), checked_mul(width, size_of(type), "steps"), "steps");
  x.buffer = builder_.add_device_buffer(type, bytes, (items_are_sequences_ ? x.batch : x.step) * size_of(type));
  return x;
}

namespace {

// The leading dimension of some steps of some sequences as one matrix; 0: they are none.
std::int64_t ld_of(const sequence &x, range steps, range batch, bool batch_major) noexcept {
  if (batch.size == 1) return steps.size == 1 ? std::max<std::int64_t>(1, x.width) : x.step;
  if (steps.size == 1) return x.batch;
  if (batch_major) return x.batch == steps.size * x.step ? x.step : 0;
  return x.step == batch.size * x.batch ? x.batch : 0;
}

bool are_matrices(const sequence &x, std::span<const sequence> others, range steps, range batch, bool batch_major) {
  return ld_of(x, steps, batch, batch_major) > 0 &&
         std::ranges::all_of(others, [&](const sequence &each) { return ld_of(each, steps, batch, batch_major) > 0; });
}

}  // namespace

bool recurrent_parts::is_matrix(const sequence &x, bool batch_major) const noexcept {
  return ld_of(x, all_steps(), all_batch(), batch_major) > 0;
}

view recurrent_parts::view_of(const sequence &x, range steps, range batch, std::span<const sequence> others,
                              std::int64_t col, std::int64_t width) const {
  const std::int64_t size = size_of(x.type);
  for (const bool batch_major : {false, true})
    if (are_matrices(x, others, steps, batch, batch_major))
      return {x.buffer,
              0,
              1,
              (steps.first * x.step + batch.first * x.batch + col) * size,
              std::max(width, ld_of(x, steps, batch, batch_major)),
              width,
              steps.size * batch.size};
  if (items_are_sequences_)
    return {x.buffer, batch.first, batch.size, (steps.first * x.step + col) * size, x.step, width, steps.size};
  return {x.buffer, steps.first, steps.size, (batch.first * x.batch + col) * size, x.batch, width, batch.size};
}

view recurrent_parts::of_state(which x, range batch) const noexcept {
  return {slot(x), 0, 1, batch.first * f_.state_stride * size_of(f_.type), f_.state_stride, hidden(), batch.size};
}

view recurrent_parts::of_wide_state(std::int32_t buffer, range batch) const noexcept {
  return {buffer, 0, 1, batch.first * hidden() * size_of(wide()), hidden(), hidden(), batch.size};
}

view recurrent_parts::of_weights(which x, std::int64_t first, std::int64_t count) const noexcept {
  const std::int64_t width = x == which::w_ih || x == which::dw_ih ? f_.in : hidden();
  return {slot(x), 0, 1, first * width * size_of(type_of(f_, x)), width, width, count};
}

view recurrent_parts::of_vector(std::int32_t buffer, sg_dtype type, std::int64_t first,
                                std::int64_t count) const noexcept {
  return {buffer, 0, 1, first * size_of(type), count, count, 1};
}

std::uint32_t recurrent_parts::add(command c, int lane) {
  c.where.index = std::uint16_t(lane);
  std::vector<std::uint32_t> &waits = pending_[std::size_t(lane)];
  const std::uint32_t added = builder_.add(c, waits);
  waits.clear();
  note(added);
  return added;
}

void recurrent_parts::note(std::uint32_t command) { builder_.merge(latest_, command); }

void recurrent_parts::end_phase() {
  if (latest_.empty()) return;
  for (const std::uint32_t each : barrier_) builder_.merge(latest_, each);
  barrier_ = std::move(latest_);
  latest_.clear();
  for (auto &waits : pending_) waits = barrier_;
}

void recurrent_parts::multiply(const view &c, const view &a, sg_transpose op_a, const view &b, sg_transpose op_b,
                               bool adds, int lane, const view *bias) {
  const std::int64_t k = op_a == SG_TRANSPOSE_N ? a.cols : a.rows;
  command made = builder_.multiply(
      {c.rows, c.cols, k, op_a, op_b, f_.compute, scalar_role::one, adds ? scalar_role::one : scalar_role::zero}, 0);
  made.views[ops::gemm::a] = a, made.views[ops::gemm::b] = b, made.views[ops::gemm::c] = c;
  if (bias) made.views[ops::epilogue::bias] = *bias;
  flops_ += flops_per_mac(f_.type) * double(c.rows) * double(c.cols) * double(k) * double(c.items);
  add(made, lane);
}

void recurrent_parts::fill(const view &c, int lane, const view *bias) {
  command made = builder_.scale(c, scalar_role::zero, 0);
  if (bias) made.views[ops::epilogue::bias] = *bias;
  add(made, lane);
}

void recurrent_parts::convert(const view &to, const view &from, int lane) {
  command made;
  made.what = ops::convert{};
  made.views[ops::convert::c] = to, made.views[ops::convert::a] = from;
  add(made, lane);
}

void recurrent_parts::add_to(const view &to, const view &from, int lane) {
  command made = builder_.scale(to, scalar_role::one, 0);
  made.views[ops::reduce::parts] = from;
  add(made, lane);
}

void recurrent_parts::copy_steps(const sequence &to, std::int64_t first, const sequence &from, std::int64_t from_first,
                                 std::int64_t count) {
  const range into{first, count}, out_of{from_first, count};
  for (const bool batch_major : {false, true})
    if (ld_of(to, into, all_batch(), batch_major) > 0 && ld_of(from, out_of, all_batch(), batch_major) > 0)
      return convert(view_of(to, into, all_batch(), {}, 0, to.width),
                     view_of(from, out_of, all_batch(), {}, 0, to.width));
  if (items_are_sequences_)
    for (std::int64_t b = 0; b < f_.batch; ++b)
      convert(view_of(to, into, {b, 1}, {}, 0, to.width), view_of(from, out_of, {b, 1}, {}, 0, to.width));
  else
    for (std::int64_t i = 0; i < count; ++i)
      convert(of_step(to, first + i, all_batch()), of_step(from, from_first + i, all_batch()));
}

int recurrent_parts::lanes_for(double flops, std::int64_t parts) const noexcept {
  const double seconds = flops / gemm_rate_of(model_, f_.type, f_.compute);
  const auto worth = std::int64_t(std::min(seconds / (least_launches_of_lane * model_.launch_latency), 1e6));
  return int(std::clamp<std::int64_t>(std::min(worth, parts), 1, most_lanes_));
}

schedule recurrent_parts::finish(std::string strategy) {
  schedule made = builder_.finish(std::move(strategy));
  made.flops = flops_;
  double bytes = 0;
  for (const buffer &each : made.buffers)
    if (each.kind == buffer_kind::parameter) bytes += double(each.bytes);
  made.predicted_seconds = simulate(made, model_).seconds;
  const double rate = gemm_rate_of(model_, f_.type, f_.compute) * (model_.lanes_are_cores ? model_.compute_lanes : 1);
  made.bound_seconds = std::max(flops_ / rate, bytes / model_.memory_rate);
  return made;
}

}  // namespace sg
