// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/layers.h>

#include <cmath>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/layer.hpp"
#include "api/submission.hpp"
#include "api/wait.hpp"

namespace sg {

namespace {

bool is_row_major(const sg_matrix &view) noexcept { return view.layout == SG_LAYOUT_ROW_MAJOR; }

sg_matrix vector_view(const void *values, const sg_matrix &like) noexcept {
  return {const_cast<void *>(values), like.cols, 1, 0, like.dtype, SG_LAYOUT_COLUMN_MAJOR};
}

}  // namespace

void submit_elementwise(context &on, const sg_elementwise_desc &d, const char *name, checked_submit &order,
                        sg_job **out_job) {
  const given_operand a{name, "a", d.a, nullptr, 0}, b{name, "b", d.b, nullptr, 0}, c{name, "c", d.c, nullptr, 0};
  if (d.function < SG_FUNCTION_RELU || d.function > SG_FUNCTION_MULTIPLY)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->function is %d, which is no function", name, int{d.function});
  require_reserved_zero(d.reserved, name);
  const bool two = ops::takes_two(d.function);
  check_view(c);
  check_view(a);
  if (two) check_view(b);
  require_layer_type(c);
  require_same_form(a, c);
  if (two) require_same_form(b, c);
  layer x;
  x.what = ops::elementwise{d.function};
  x.strategy = ops::name_of(d.function);
  x.flops_per_element = 1;
  x.splits_both = true;
  add_operand(x, operand_name::a, a, ops::elementwise::a);
  if (two) add_operand(x, operand_name::b, b, ops::elementwise::b);
  add_operand(x, operand_name::c, c, ops::elementwise::c);
  auto wanted = backend_command<sg_backend_elementwise>();
  wanted.type = d.c.dtype;
  wanted.function = d.function;
  bind_layer(x, on, wanted.header, x.strategy.c_str());
  submit_layer(on, x, SG_OPERATION_ELEMENTWISE, name, order, out_job);
}

void submit_softmax(context &on, const sg_softmax_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand in{name, "x", d.x, nullptr, 0}, out{name, "y", d.y, nullptr, 0};
  if (d.mask < SG_MASK_NONE || d.mask > SG_MASK_CAUSAL)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->mask is %d, which is no mask", name, int{d.mask});
  // Sums with row numbers must not overflow.
  constexpr std::int64_t most_offset = std::int64_t{1} << 61;
  if (d.mask == SG_MASK_NONE)
    require_range(d.mask_offset, 0, 0, (std::string(name) + "->mask_offset").c_str());
  else
    require_range(d.mask_offset, -most_offset, most_offset, (std::string(name) + "->mask_offset").c_str());
  require_reserved_zero(d.reserved, name);
  check_view(out);
  check_view(in);
  require_layer_type(out);
  require_same_form(in, out);
  const std::string mask_rows = std::string(name) + "->mask_rows";
  require_range(d.mask_rows, 0, d.mask == SG_MASK_NONE ? 0 : most_offset, mask_rows.c_str());
  if (d.mask_rows > 0 && d.x.rows % d.mask_rows != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s is %lld, which does not divide %s->x.rows, %lld", mask_rows.c_str(),
                static_cast<long long>(d.mask_rows), name, static_cast<long long>(d.x.rows));
  layer x;
  ops::softmax what;
  what.by_rows = is_row_major(d.y);
  what.mask = d.mask;
  what.mask_offset = d.mask_offset;
  what.mask_rows = d.mask_rows;
  x.what = what;
  x.strategy = d.mask == SG_MASK_CAUSAL ? "softmax causal" : "softmax";
  x.flops_per_element = 5;
  x.splits_columns = what.by_rows;
  add_operand(x, operand_name::a, in, ops::softmax::x);
  add_operand(x, operand_name::c, out, ops::softmax::y);
  auto wanted = backend_command<sg_backend_softmax>();
  wanted.type = d.y.dtype;
  wanted.mask = d.mask;
  bind_layer(x, on, wanted.header, "softmax");
  submit_layer(on, x, SG_OPERATION_SOFTMAX, name, order, out_job);
}

void submit_norm(context &on, const sg_norm_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const sg_matrix gamma_view = vector_view(d.gamma, d.x), beta_view = vector_view(d.beta, d.x);
  const given_operand in{name, "x", d.x, nullptr, 0}, out{name, "y", d.y, nullptr, 0};
  const given_operand gamma{name, "gamma", gamma_view, nullptr, 0, ""}, beta{name, "beta", beta_view, nullptr, 0, ""};
  if (d.kind != SG_NORM_LAYER && d.kind != SG_NORM_RMS)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->kind is %d, which is no kind of a norm", name, int{d.kind});
  if (!(d.epsilon >= 0) || !std::isfinite(d.epsilon))
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->epsilon is %g; it must be finite and not negative", name, d.epsilon);
  if (d.beta && d.kind == SG_NORM_RMS)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->beta is %p; an RMS norm has none", name, d.beta);
  require_reserved_zero(d.reserved, name);
  check_view(out);
  check_view(in);
  require_layer_type(out);
  require_same_form(in, out);
  layer x;
  ops::norm what;
  what.by_rows = is_row_major(d.y);
  what.kind = d.kind;
  what.epsilon = d.epsilon;
  x.what = what;
  x.strategy = d.kind == SG_NORM_RMS ? "rms norm" : "layer norm";
  x.flops_per_element = d.kind == SG_NORM_RMS ? 4 : 8;
  x.splits_columns = what.by_rows;
  add_operand(x, operand_name::a, in, ops::norm::x);
  add_operand(x, operand_name::c, out, ops::norm::y);
  if (d.gamma) add_operand(x, operand_name::b, gamma, ops::norm::gamma);
  if (d.beta) add_operand(x, operand_name::bias, beta, ops::norm::beta);
  auto wanted = backend_command<sg_backend_norm>();
  wanted.type = d.y.dtype;
  wanted.kind = d.kind;
  bind_layer(x, on, wanted.header, x.strategy.c_str());
  submit_layer(on, x, SG_OPERATION_NORM, name, order, out_job);
}

namespace {

// Checks and submits an operation by its own function.
template <class Desc>
sg_status submit_desc(sg_context *context, const Desc *desc, const Desc &defaults, const sg_submit *submit,
                      sg_job **out_job,
                      void (*run)(sg::context &, const Desc &, const char *, checked_submit &, sg_job **)) noexcept {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const auto on = context_of(context);
    require(desc, "desc");
    const Desc given = options_of(desc, defaults, "desc");
    checked_submit order(*on, submit);
    run(*on, given, "desc", order, out_job);
  });
}

}  // namespace

}  // namespace sg

sg_status sg_elementwise_async(sg_context *context, const sg_elementwise_desc *desc, const sg_submit *submit,
                               sg_job **out_job) {
  return sg::submit_desc<sg_elementwise_desc>(context, desc, SG_ELEMENTWISE_DESC_INIT, submit, out_job,
                                              sg::submit_elementwise);
}

sg_status sg_elementwise(sg_context *context, const sg_elementwise_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) { return sg_elementwise_async(context, desc, submit, out_job); });
}

sg_status sg_softmax_async(sg_context *context, const sg_softmax_desc *desc, const sg_submit *submit,
                           sg_job **out_job) {
  return sg::submit_desc<sg_softmax_desc>(context, desc, SG_SOFTMAX_DESC_INIT, submit, out_job, sg::submit_softmax);
}

sg_status sg_softmax(sg_context *context, const sg_softmax_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) { return sg_softmax_async(context, desc, submit, out_job); });
}

sg_status sg_norm_async(sg_context *context, const sg_norm_desc *desc, const sg_submit *submit, sg_job **out_job) {
  return sg::submit_desc<sg_norm_desc>(context, desc, SG_NORM_DESC_INIT, submit, out_job, sg::submit_norm);
}

sg_status sg_norm(sg_context *context, const sg_norm_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) { return sg_norm_async(context, desc, submit, out_job); });
}
