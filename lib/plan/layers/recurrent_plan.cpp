// SPDX-License-Identifier: Apache-2.0
// The size of the workspace of a recurrent layer.
#include "base/hash.hpp"
#include "plan/layers/recurrent.hpp"
#include "plan/layers/within_limit.hpp"

namespace sg {

namespace {

template <class ModeOf>
void visit_given(recurrent_form &f, const operand_visitor &visit, const ModeOf &mode_of) {
  using enum recurrent_operand;
  for (int i = 0; i < recurrent_operands; ++i) {
    const auto which = static_cast<recurrent_operand>(i);
    if (!f.has(which)) continue;
    stored_array array{i, type_of(f, which), mode_of(which), 0, {}};
    const auto of_sequence = [&](sequence_strides &strides, std::int64_t width) {
      array.run = width;
      array.dimensions = {{{f.steps, strides.step, &strides.step}, {f.batch, strides.batch, &strides.batch}, {}}};
    };
    switch (which) {
      case x: of_sequence(f.x, f.in); break;
      case y: of_sequence(f.y, f.hidden); break;
      case dx: of_sequence(f.dx, f.in); break;
      case dy: of_sequence(f.dy, f.hidden); break;
      case h0:
      case c0:
      case hn:
      case cn:
      case dhn:
      case dcn:
      case dh0:
      case dc0:  // one stride for all
        array.run = f.hidden;
        array.dimensions = {{{f.batch, f.state_stride, nullptr}, {}, {}}};
        break;
      default: array.run = bytes_of(f, which) / size_of(array.type);
    }
    visit(array, f.spaces[static_cast<std::size_t>(i)]);
  }
}

}  // namespace

void visit_operands(recurrent_form &f, const operand_visitor &visit) {
  using enum recurrent_operand;
  visit_given(f, visit, [](recurrent_operand of) {
    const bool is_result = of == y || of == reserve || of == hn || of == cn;
    return is_result ? access_mode::write : access_mode::read;
  });
}

void visit_operands(recurrent_backward_form &f, const operand_visitor &visit) {
  using enum recurrent_operand;
  visit_given(f, visit, [&f](recurrent_operand of) {
    const bool is_sum = of == dw_ih || of == dw_hh || of == dbias_ih || of == dbias_hh;
    const bool is_result = is_sum || of == dx || of == dh0 || of == dc0;
    return !is_result ? access_mode::read : is_sum && f.accumulate ? access_mode::read_write : access_mode::write;
  });
}

schedule plan_of(const recurrent_form &f, const plan_terms &terms) {
  return schedule_within(terms.memory_limit, usual_recurrent_workspace(terms.model), false, "a recurrent layer",
                         [&](std::int64_t workspace) {
                           recurrent_form tried = f;
                           tried.workspace = workspace;
                           return build_recurrent(tried, terms.model, terms.lanes);
                         });
}

schedule plan_of(const recurrent_backward_form &f, const plan_terms &terms) {
  schedule made = build_recurrent_backward(f, terms.model, terms.lanes);
  if (made.device_bytes <= terms.memory_limit) return made;
  throw error(SG_STATUS_OUT_OF_MEMORY,
              "the gradients of a recurrent layer need %lld bytes of device memory; the limit is %lld: give them fewer "
              "steps or a smaller batch",
              static_cast<long long>(made.device_bytes), static_cast<long long>(terms.memory_limit));
}

std::uint64_t hash_of(const recurrent_form &f) noexcept {
  hasher mixed;
  for (const std::int64_t x :
       {f.steps, f.batch, f.in, f.hidden, f.x.step, f.y.step, f.state_stride, std::int64_t{f.given},
        std::int64_t{f.type} << 8 | std::int64_t{f.cell} << 4 | std::int64_t{f.reverse} << 1 | f.accumulate})
    mixed << x;
  return mixed.value();
}

std::string description_of(const recurrent_form &f) {
  return std::string(f.is_lstm() ? "an LSTM of " : "a GRU of ") + std::to_string(f.steps) + " steps, batch " +
         std::to_string(f.batch) + ", " + std::to_string(f.in) + " to " + std::to_string(f.hidden) + ", " +
         name_of(f.type);
}

std::string description_of(const recurrent_backward_form &f) {
  return "the gradients of " + description_of(static_cast<const recurrent_form &>(f));
}

}  // namespace sg
