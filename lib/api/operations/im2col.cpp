// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/conv.h>

#include <string>

#include "api/operands/windows_of.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

namespace {

template <class Desc>
checked_windows windows_of(const Desc &d, const char *name) {
  if (d.columns != SG_FILTER_OIHW && d.columns != SG_FILTER_OHWI)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->columns is %d, which is no order of a filter", name, int{d.columns});
  checked_windows w = check_windows({name, d.images, d.channels, d.height, d.width, d.first_channel, d.used_channels,
                                     d.windows, d.image_layout, d.columns});
  w.of.positions_are_rows = d.matrix.layout == SG_LAYOUT_COLUMN_MAJOR;
  return w;
}

void require_matrix(const given_operand &matrix, const checked_windows &w) {
  using long_long = long long;
  check_view(matrix);
  const std::int64_t rows = w.positions(), cols = w.of.columns();
  if (matrix.view.rows != rows || matrix.view.cols != cols)
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@%s->matrix is %lld x %lld; with these images and windows it must be %lld x %lld", matrix.desc,
                long_long{matrix.view.rows}, long_long{matrix.view.cols}, long_long{rows}, long_long{cols});
}

}  // namespace

void submit(context &on, const sg_im2col_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const checked_windows w = windows_of(d, name);
  const given_operand matrix = given_matrix(name, "matrix", d.matrix);
  require_matrix(matrix, w);
  const std::int64_t stride = checked_stride(name, "x", d.x, w.images, w.elements_of_image());
  const sg_matrix view = image_view(d.x, stride, w, d.matrix.dtype);
  const given_operand images{name, "x", view, nullptr, 0, ".data", &d.x.data};
  layer x(on, order);
  ops::im2col what;
  static_cast<ops::windows &>(what) = w.of;
  x.set_operation(what, "im2col", 0, between_rows(!w.of.positions_are_rows));
  x.allows_in_place = false;
  add_operand(x, images, ops::im2col::image, share::some);
  if (d.x.data) x.operands[ops::im2col::image].set = image_bytes(d.x, stride, w, d.matrix.dtype);
  add_operand(x, matrix, ops::im2col::matrix);
  auto wanted = backend_command<sg_backend_im2col>();
  wanted.element_bytes = static_cast<std::int32_t>(size_of(d.matrix.dtype));
  bind_layer(x, wanted.header, "im2col");
  submit_layer(on, x, SG_OPERATION_IM2COL, d, name, order, out_job);
}

void submit(context &on, const sg_col2im_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const checked_windows w = windows_of(d, name);
  const given_operand matrix = given_matrix(name, "matrix", d.matrix);
  require_matrix(matrix, w);
  require_layer_type(matrix);
  require_range(d.accumulate, 0, 1, (std::string(name) + "->accumulate").c_str());
  const std::int64_t stride = checked_stride(name, "x", d.x, w.images, w.elements_of_image());
  const sg_matrix view = image_view(d.x, stride, w, d.matrix.dtype);
  const given_operand images{name, "x", view, nullptr, 0, ".data", &d.x.data};
  const bool has_windows = w.positions() > 0;
  layer x(on, order);
  ops::col2im what;
  static_cast<ops::windows &>(what) = w.of;
  what.accumulates = d.accumulate != 0;
  x.set_operation(what, "col2im", 0, command_form::split::columns);
  x.allows_in_place = false;
  add_operand(x, images, ops::col2im::image);
  if (d.x.data) x.operands[ops::col2im::image].set = image_bytes(d.x, stride, w, d.matrix.dtype);
  if (has_windows) add_operand(x, matrix, ops::col2im::matrix, share::whole);
  auto wanted = backend_command<sg_backend_col2im>();
  wanted.type = wanted.matrix_type = d.matrix.dtype;
  bind_layer(x, wanted.header, "col2im");
  if (what.accumulates && !has_windows) x.is_empty = true;
  submit_layer(on, x, SG_OPERATION_COL2IM, d, name, order, out_job);
}

}  // namespace sg
