// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/gradients.h>
#include <streamgemm/layers.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "api/entry.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

namespace {

bool is_row_major(const sg_matrix &view) noexcept { return view.layout == SG_LAYOUT_ROW_MAJOR; }

}  // namespace

void submit(context &on, const sg_elementwise_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand a = given_by_rows(name, "a", d.a), b = given_by_rows(name, "b", d.b),
                      c = given_by_rows(name, "c", d.c);
  if (d.function < SG_FUNCTION_RELU || d.function > SG_FUNCTION_TANH_GRADIENT)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->function is %d, which is no function", name, int{d.function});
  const bool two = ops::takes_two(d.function);
  check_view(c);
  check_view(a);
  if (two) check_view(b);
  require_layer_type(c);
  require_same_form(a, c);
  if (two) require_same_form(b, c);
  layer x(on, order);
  x.by_rows = is_row_major(c.view);
  x.set_operation(ops::elementwise{d.function}, ops::name_of(d.function), 1, command_form::split::either);
  add_matrix(x, a, ops::elementwise::a);
  if (two) add_matrix(x, b, ops::elementwise::b);
  add_matrix(x, c, ops::elementwise::c);
  auto wanted = backend_command<sg_backend_elementwise>();
  wanted.type = d.c.dtype;
  wanted.function = d.function;
  bind_layer(x, wanted.header, x.form.strategy);
  submit_layer(on, x, SG_OPERATION_ELEMENTWISE, d, name, order, out_job);
}

void submit(context &on, const sg_softmax_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand in = given_by_rows(name, "x", d.x), out = given_by_rows(name, "y", d.y);
  if (d.mask < SG_MASK_NONE || d.mask > SG_MASK_CAUSAL)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->mask is %d, which is no mask of a softmax", name, int{d.mask});
  // Sums with row numbers must not overflow.
  constexpr std::int64_t most_offset = std::int64_t{1} << 61;
  if (d.mask == SG_MASK_NONE)
    require_range(d.mask_offset, 0, 0, (std::string(name) + "->mask_offset").c_str());
  else
    require_range(d.mask_offset, -most_offset, most_offset, (std::string(name) + "->mask_offset").c_str());
  check_view(out);
  check_view(in);
  require_layer_type(out);
  require_same_form(in, out);
  const std::string mask_rows = std::string(name) + "->mask_rows";
  require_range(d.mask_rows, 0, d.mask == SG_MASK_NONE ? 0 : most_offset, mask_rows.c_str());
  if (d.mask_rows > 0 && d.x.rows % d.mask_rows != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s is %lld, which does not divide @%s->x.rows, %lld", mask_rows.c_str(),
                static_cast<long long>(d.mask_rows), name, static_cast<long long>(d.x.rows));
  layer x(on, order);
  ops::softmax what;
  what.by_rows = x.by_rows = is_row_major(out.view);
  what.mask = d.mask;
  what.mask_offset = d.mask_offset;
  what.mask_rows = d.mask_rows;
  x.set_operation(what, d.mask == SG_MASK_CAUSAL ? "softmax causal" : "softmax", 5, between_rows(what.by_rows));
  add_matrix(x, in, ops::softmax::x);
  add_matrix(x, out, ops::softmax::y);
  auto wanted = backend_command<sg_backend_softmax>();
  wanted.type = d.y.dtype;
  wanted.mask = d.mask;
  bind_layer(x, wanted.header, "softmax");
  submit_layer(on, x, SG_OPERATION_SOFTMAX, d, name, order, out_job);
}

void submit(context &on, const sg_norm_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand in = given_by_rows(name, "x", d.x), out = given_by_rows(name, "y", d.y);
  const given_operand gamma = given_values(name, "gamma", d.gamma, d.x.cols, 1, d.x.dtype),
                      beta = given_values(name, "beta", d.beta, d.x.cols, 1, d.x.dtype);
  require_norm(d.kind, d.epsilon, name);
  if (d.beta && d.kind == SG_NORM_RMS)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->beta is given; an RMS norm has none", name);
  check_view(out);
  check_view(in);
  require_layer_type(out);
  require_same_form(in, out);
  layer x(on, order);
  ops::norm what;
  what.by_rows = x.by_rows = is_row_major(out.view);
  what.kind = d.kind;
  what.epsilon = d.epsilon;
  const bool is_rms = d.kind == SG_NORM_RMS;
  x.set_operation(what, is_rms ? "rms norm" : "layer norm", is_rms ? 4 : 8, between_rows(what.by_rows));
  add_matrix(x, in, ops::norm::x);
  add_matrix(x, out, ops::norm::y);
  if (d.gamma) add_operand(x, gamma, ops::norm::gamma, share::whole);
  if (d.beta) add_operand(x, beta, ops::norm::beta, share::whole);
  auto wanted = backend_command<sg_backend_norm>();
  wanted.type = d.y.dtype;
  wanted.kind = d.kind;
  bind_layer(x, wanted.header, x.form.strategy);
  submit_layer(on, x, SG_OPERATION_NORM, d, name, order, out_job);
}

namespace {

// The payload of a rotary embedding of X's columns.
ops::rotary rotary_of(const sg_rotary_desc &d, const char *name, const char *x_name) {
  using long_long = long long;
  const auto field = [name](const char *of) { return std::string(name) + "->" + of; };
  ops::rotary what;
  what.head_size = d.head_size != 0 ? d.head_size : std::max<std::int64_t>(d.x.cols, 2);
  if (what.head_size < 0 || d.x.cols % what.head_size != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@%s->head_size is %lld; it must be a divisor of the %lld columns of @%s->%s, or 0", name,
                long_long{d.head_size}, long_long{d.x.cols}, name, x_name);
  what.rotated_size = d.rotated_size != 0 ? d.rotated_size : what.head_size;
  if (what.rotated_size < 0 || what.rotated_size % 2 != 0 || what.rotated_size > what.head_size)
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@%s->rotated_size is %lld; the rotated elements of a head of %lld must be even in number, and no more",
                name, long_long{d.rotated_size}, long_long{what.head_size});
  constexpr std::int64_t most = std::int64_t{1} << 52;  // so many positions are exact in f64
  require_range(d.first_position, 0, most, field("first_position").c_str());
  require_range(d.sequence_length, 0, most, field("sequence_length").c_str());
  what.first_position = d.first_position;
  what.sequence_length = d.sequence_length != 0 ? d.sequence_length : std::max<std::int64_t>(d.x.rows, 1);
  if (!(d.theta > 0) || !std::isfinite(d.theta))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->theta is %g; it must be positive and finite", name, d.theta);
  if (d.pairs != SG_ROTARY_HALVES && d.pairs != SG_ROTARY_INTERLEAVED)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->pairs is %d, which is no kind of pairs", name, int{d.pairs});
  require_range(d.inverse, 0, 1, field("inverse").c_str());
  what.theta = d.theta;
  what.pairs = d.pairs;
  what.inverse = d.inverse;
  return what;
}

// A table has a row for each position and a column for each pair.
void require_table(const given_operand &table, const given_operand &x, const ops::rotary &what) {
  using long_long = long long;
  check_view(table);
  const sg_dtype type = table.view.dtype, of_x = x.view.dtype;
  if (type != of_x && (type != SG_DTYPE_F32 || of_x == SG_DTYPE_F64))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->%s.dtype is %s; with @%s->%s of %s it must be that%s", table.desc,
                table.name, name_of(type), x.desc, x.name, name_of(of_x),
                of_x == SG_DTYPE_F16 || of_x == SG_DTYPE_BF16 ? " or f32" : "");
  const std::int64_t positions = what.first_position + std::min(x.view.rows, what.sequence_length);
  if (table.view.cols != what.rotated_size / 2 || table.view.rows < positions)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is %lld x %lld; it must have %lld columns and at least %lld rows",
                table.desc, table.name, long_long{table.view.rows}, long_long{table.view.cols},
                long_long{what.rotated_size / 2}, long_long{positions});
}

// A rotary embedding, or its gradient, whose operands have other names and places in its descriptor, `given`.
struct rotary_names {
  const char *x, *y;
};
template <class Desc>
void submit_rotary(context &on, const sg_rotary_desc &d, const Desc &given, const rotary_names &names,
                   const sg_matrix &given_x, const sg_matrix &given_y, sg_operation operation, const char *name,
                   checked_submit &order, sg_job **out_job) {
  const given_operand in = given_by_rows(name, names.x, given_x), out = given_by_rows(name, names.y, given_y);
  const given_operand cosines = given_by_rows(name, "cos", given.cos), sines = given_by_rows(name, "sin", given.sin);
  check_view(out);
  check_view(in);
  require_layer_type(out);
  require_same_form(in, out);
  const bool has_tables = d.cos.data != nullptr;
  if (has_tables != (d.sin.data != nullptr))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is given and @%s->%s is not; give both or neither", name,
                has_tables ? "cos" : "sin", name, has_tables ? "sin" : "cos");
  const ops::rotary what = rotary_of(d, name, names.x);
  for (const given_operand *each : {&cosines, &sines})
    if (has_tables) require_table(*each, in, what);
  if (has_tables && d.cos.dtype != d.sin.dtype)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->cos.dtype is %s and @%s->sin.dtype is %s; they must be equal", name,
                name_of(d.cos.dtype), name, name_of(d.sin.dtype));
  layer x(on, order);
  x.set_operation(what, d.inverse ? "rotary inverse" : "rotary", 3, command_form::split::columns);
  add_matrix(x, in, ops::rotary::x);
  add_matrix(x, out, ops::rotary::y);
  if (has_tables) add_matrix(x, cosines, ops::rotary::cos, share::some);
  if (has_tables) add_matrix(x, sines, ops::rotary::sin, share::some);
  auto wanted = backend_command<sg_backend_rotary>();
  wanted.type = d.y.dtype;
  wanted.table_type = has_tables ? d.cos.dtype : d.y.dtype;
  wanted.pairs = d.pairs;
  bind_layer(x, wanted.header, "rotary embedding");
  submit_layer(on, x, operation, given, name, order, out_job);
}

}  // namespace

void submit(context &on, const sg_rotary_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  submit_rotary(on, d, d, {"x", "y"}, d.x, d.y, SG_OPERATION_ROTARY, name, order, out_job);
}

void submit(context &on, const sg_rotary_backward_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const sg_rotary_desc rotary{
      sizeof rotary,     d.dy,    d.dx,    d.cos, d.sin, d.head_size, d.rotated_size, d.first_position,
      d.sequence_length, d.theta, d.pairs, 1};
  submit_rotary(on, rotary, d, {"dy", "dx"}, d.dy, d.dx, SG_OPERATION_ROTARY_BACKWARD, name, order, out_job);
}

}  // namespace sg
