// SPDX-License-Identifier: Apache-2.0
#include "ops/windows.hpp"

#include <algorithm>

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::col2im;
using ops::im2col;
using ops::windows;

std::int64_t positions_in(const windows &w, const view &matrix) {
  if (!matrix.exists()) return 0;
  return w.positions_are_rows ? matrix.rows : matrix.cols;
}

const char *defect_of(const windows &w, const view &image, const view &matrix) {
  if (!image.exists()) return "windows have images";
  if (image.items != 1 || matrix.items != 1) return "windows have one item";
  if (image.rows != w.span_of_image()) return "the images of windows do not fit";
  return !matrix.exists() || (w.positions_are_rows ? matrix.cols : matrix.rows) == w.columns()
             ? nullptr
             : "the columns of windows do not fit";
}

// An im2col reads each pixel once, if it needs it; a col2im writes each pixel, and may read it.
double bytes_of_im2col(double matrix, double images) { return matrix + std::min(images, matrix); }
double bytes_of_col2im(double matrix, double images, bool accumulates) {
  return matrix + images * (accumulates ? 2 : 1);
}

double bytes_of_view(const buffer_list &buffers, const view &v) {
  if (!v.exists()) return 0;
  return double(v.rows) * double(v.cols) * double(size_of(type_of(buffers, v)));
}

command_cost cost_of(const device_model &model, double bytes) {
  const kernel_cost alone = memory_bound_kernel(model, bytes);
  command_cost cost;
  cost.amount = alone.seconds;
  cost.chip_share = alone.chip_share;
  cost.memory_share = alone.memory_share;
  cost.delay_idle = std::max(model.launch_latency, model.launch_gap);
  cost.delay_queued = model.launch_gap;
  return cost;
}

sg_backend_windows lowered(const windows &w, const view &image, const view &matrix) {
  sg_backend_windows to = lower_images(w, image);
  to.first_position = w.first_position;
  to.positions = positions_in(w, matrix);
  to.position = w.positions_are_rows ? 1 : matrix.ld;
  to.column = w.positions_are_rows ? matrix.ld : 1;
  return to;
}

double elements_of_matrix(const sg_backend_windows &w) {
  return double(w.positions) * double(w.channels) * double(w.kernel_h) * double(w.kernel_w);
}
double elements_of_images(const sg_backend_windows &w) {
  return double(w.images) * double(w.channels) * double(w.height) * double(w.width);
}

access_mode access_im2col(const command &, std::size_t view) {
  return view == im2col::matrix ? access_mode::write : access_mode::read;
}

const char *defect_of_im2col(const buffer_list &buffers, const command &c) {
  const im2col &w = *c.as<im2col>();
  const view &image = c.views[im2col::image], &matrix = c.views[im2col::matrix];
  if (const char *defect = defect_of(w, image, matrix)) return defect;
  if (!matrix.exists()) return "an im2col has a matrix";
  if (type_of(buffers, image) != type_of(buffers, matrix)) return "images and matrix differ in type";
  const std::int64_t end = w.first_position + positions_in(w, matrix);
  return w.first_position >= 0 && end <= image.cols * w.positions_of_image() ? nullptr : "a window of no image";
}

command_cost cost_of_im2col(const device_model &model, const buffer_list &buffers, const command &c) {
  return cost_of(model, bytes_of_im2col(bytes_of_view(buffers, c.views[im2col::matrix]),
                                        bytes_of_view(buffers, c.views[im2col::image])));
}

std::string describe_im2col(const buffer_list &, const command &c) {
  return "im2col" + shape_text(c.views[im2col::matrix]);
}

void lower_im2col(const buffer_list &buffers, const command &c, const binding &where, backend_commands &out) {
  const view &image = c.views[im2col::image], &matrix = c.views[im2col::matrix];
  auto x = backend_command<sg_backend_im2col>();
  x.of = lowered(*c.as<im2col>(), image, matrix);
  x.element_bytes = static_cast<std::int32_t>(size_of(type_of(buffers, matrix)));
  x.x = address_of(buffers, image, where, image.item);
  x.matrix = address_of(buffers, matrix, where, matrix.item);
  out.add(x);
}

double seconds_of_im2col(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_im2col>(command);
  const double bytes = bytes_of_im2col(elements_of_matrix(x.of), elements_of_images(x.of)) * x.element_bytes;
  return model.launch_gap + memory_bound_kernel(model, bytes).seconds;
}

access_mode access_col2im(const command &c, std::size_t view) {
  if (view == col2im::matrix) return access_mode::read;
  return c.as<col2im>()->accumulates ? access_mode::read_write : access_mode::write;
}

const char *defect_of_col2im(const buffer_list &buffers, const command &c) {
  const view &image = c.views[col2im::image], &matrix = c.views[col2im::matrix];
  if (const char *defect = defect_of(*c.as<col2im>(), image, matrix)) return defect;
  if (!matrix.exists()) return nullptr;  // there are no windows: zeros
  const sg_dtype type = type_of(buffers, image), from = type_of(buffers, matrix);
  return from == type || from == accumulator_of(type) ? nullptr : "a matrix of another type";
}

command_cost cost_of_col2im(const device_model &model, const buffer_list &buffers, const command &c) {
  return cost_of(model, bytes_of_col2im(bytes_of_view(buffers, c.views[col2im::matrix]),
                                        bytes_of_view(buffers, c.views[col2im::image]), c.as<col2im>()->accumulates));
}

std::string describe_col2im(const buffer_list &, const command &c) {
  return "col2im" + shape_text(c.views[col2im::image]);
}

void lower_col2im(const buffer_list &buffers, const command &c, const binding &where, backend_commands &out) {
  const view &image = c.views[col2im::image], &matrix = c.views[col2im::matrix];
  auto x = backend_command<sg_backend_col2im>();
  x.of = lowered(*c.as<col2im>(), image, matrix);
  x.type = type_of(buffers, image);
  x.matrix_type = matrix.exists() ? type_of(buffers, matrix) : x.type;
  x.accumulate = c.as<col2im>()->accumulates;
  if (matrix.exists()) x.matrix = address_of(buffers, matrix, where, matrix.item);
  x.x = address_of(buffers, image, where, image.item);
  out.add(x);
}

double seconds_of_col2im(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_col2im>(command);
  const double bytes = bytes_of_col2im(elements_of_matrix(x.of) * double(size_of(x.matrix_type)),
                                       elements_of_images(x.of) * double(size_of(x.type)), x.accumulate != 0);
  return model.launch_gap + memory_bound_kernel(model, bytes).seconds;
}

}  // namespace

sg_backend_windows lower_images(const ops::windows &w, const view &image) noexcept {
  sg_backend_windows to{};
  to.images = image.cols;
  to.image = image.ld;
  to.channel = w.channels_last ? 1 : w.pixels();
  to.pixel = w.channels_last ? w.image_channels : 1;
  to.row = w.width * to.pixel;
  to.channels = w.channels, to.groups = w.groups;
  to.height = w.height, to.width = w.width;
  to.kernel_h = w.kernel_h, to.kernel_w = w.kernel_w;
  to.stride_h = w.stride_h, to.stride_w = w.stride_w;
  to.dilation_h = w.dilation_h, to.dilation_w = w.dilation_w;
  to.pad_top = w.pad_top, to.pad_left = w.pad_left;
  to.out_h = w.out_h, to.out_w = w.out_w;
  to.channels_inner = w.channels_inner;
  return to;
}

constinit const operation ops::im2col::entry{"im2col",        access_im2col, defect_of_im2col,  cost_of_im2col,
                                             describe_im2col, lower_im2col,  SG_BACKEND_IM2COL, seconds_of_im2col};

constinit const operation ops::col2im::entry{"col2im",        access_col2im, defect_of_col2im,  cost_of_col2im,
                                             describe_col2im, lower_col2im,  SG_BACKEND_COL2IM, seconds_of_col2im};

}  // namespace sg
