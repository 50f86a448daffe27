// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/convert.h>

#include <utility>

#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

namespace {

void require_short_real(const given_operand &x) {
  const sg_dtype type = x.view.dtype;
  if (type != SG_DTYPE_F32 && type != SG_DTYPE_F16 && type != SG_DTYPE_BF16)
    throw error(SG_STATUS_UNSUPPORTED, "@%s->%s.dtype is %s; it must be f32, f16 or bf16", x.desc, x.name,
                name_of(type));
}

void require_bytes(const given_operand &x) {
  if (x.view.dtype != SG_DTYPE_I8)
    throw error(SG_STATUS_UNSUPPORTED, "@%s->%s.dtype is %s; it must be i8", x.desc, x.name, name_of(x.view.dtype));
}

// The same memory.
sg_matrix transpose_of(sg_matrix view) noexcept {
  std::swap(view.rows, view.cols);
  view.layout = view.layout == SG_LAYOUT_ROW_MAJOR ? SG_LAYOUT_COLUMN_MAJOR : SG_LAYOUT_ROW_MAJOR;
  return view;
}

}  // namespace

void submit(context &on, const sg_dequantize_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand in = given_by_rows(name, "x", d.x), out = given_by_rows(name, "y", d.y);
  const given_operand scales = given_by_rows(name, "scales", d.scales);
  const given_operand zero_points = given_by_rows(name, "zero_points", d.zero_points);
  if (d.quantization != SG_QUANTIZATION_I8 && d.quantization != SG_QUANTIZATION_I4)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->quantization is %d, which is no quantization", name,
                int{d.quantization});
  const bool has_zero_points = d.zero_points.data != nullptr;
  for (const given_operand *each : {&out, &in, &scales, &zero_points}) {
    if (each == &zero_points && !has_zero_points) continue;
    check_view(*each);
  }
  require_short_real(out);
  require_short_real(scales);
  require_bytes(in);
  if (has_zero_points) require_bytes(zero_points);
  if (d.block_size <= 0 || d.block_size % 2 != 0 || d.y.cols % d.block_size != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@%s->block_size is %lld; it must be positive, even and a divisor of the %lld columns of @%s->y", name,
                static_cast<long long>(d.block_size), static_cast<long long>(d.y.cols), name);
  ops::dequantize what;
  what.quantization = d.quantization;
  what.block_size = d.block_size;
  require_extent(in, d.y.rows, d.y.cols / what.values_in_byte(), out);
  require_extent(scales, d.y.rows, d.y.cols / d.block_size, out);
  if (has_zero_points) require_extent(zero_points, d.y.rows, d.y.cols / d.block_size, out);
  layer x(on, order);
  x.set_operation(what, d.quantization == SG_QUANTIZATION_I4 ? "dequantize i4" : "dequantize i8", 2,
                  command_form::split::columns);
  x.allows_in_place = false;
  add_matrix(x, in, ops::dequantize::x);
  add_matrix(x, scales, ops::dequantize::scales);
  add_matrix(x, out, ops::dequantize::y);
  if (has_zero_points) add_matrix(x, zero_points, ops::dequantize::zero_points);
  auto wanted = backend_command<sg_backend_dequantize>();
  wanted.quantization = d.quantization;
  wanted.scale_type = d.scales.dtype;
  wanted.type = d.y.dtype;
  bind_layer(x, wanted.header, x.form.strategy);
  submit_layer(on, x, SG_OPERATION_DEQUANTIZE, d, name, order, out_job);
}

void submit(context &on, const sg_convert_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand a = given_matrix(name, "a", d.a), out = given_by_rows(name, "c", d.c);
  check_view(out);
  check_view(a);
  require_layer_type(out);
  require_layer_type(a);
  const bool transposes = op_on_stored(a, d.op_a, d.a.layout) != SG_TRANSPOSE_N;
  require_extent(a, transposes ? d.c.cols : d.c.rows, transposes ? d.c.rows : d.c.cols, out);
  // A matrix of the other layout is the transpose; a vector then has the layout of C.
  given_operand in = a;
  in.view = by_rows_if_both(transposes ? transpose_of(d.a) : d.a);
  ops::convert what;
  what.op = op_on_stored(in, SG_TRANSPOSE_N, out.view.layout);
  layer x(on, order);
  x.set_operation(what, what.op == SG_TRANSPOSE_T ? "transpose" : "convert", 0, command_form::split::either);
  x.allows_in_place = what.op == SG_TRANSPOSE_N;
  add_operand(x, in, ops::convert::a, what.op == SG_TRANSPOSE_T ? share::transposed : share::same);
  add_operand(x, out, ops::convert::c);
  auto wanted = backend_command<sg_backend_convert>();
  wanted.in_type = d.a.dtype;
  wanted.out_type = d.c.dtype;
  bind_layer(x, wanted.header, "conversion");
  submit_layer(on, x, SG_OPERATION_CONVERT, d, name, order, out_job);
}

}  // namespace sg
