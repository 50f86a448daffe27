// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax_backward.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::softmax_backward;

access_mode access(const command &, std::size_t view) {
  return view == softmax_backward::dx ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &dx = command.views[softmax_backward::dx], &dy = command.views[softmax_backward::dy];
  if (!dx.exists() || !dy.exists()) return "a softmax's gradient has an operand and a result";
  if (dx.items != 1) return "a softmax's gradient has one item";
  const sg_dtype type = type_of(buffers, dx), of_dy = type_of(buffers, dy);
  const bool fit = fits(buffers, command.views[softmax_backward::y], dx) && dy.items == 1 && dy.rows == dx.rows &&
                   dy.cols == dx.cols && (of_dy == type || of_dy == accumulator_of(type));
  return fit ? nullptr : "operands of a softmax's gradient do not fit";
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) {
  return "softmax backward" + shape_text(c.views[softmax_backward::dx]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const view &dx = command.views[softmax_backward::dx], &y = command.views[softmax_backward::y];
  const view &dy = command.views[softmax_backward::dy];
  auto x = backend_command<sg_backend_softmax_backward>();
  x.rows = dx.cols;
  x.cols = dx.rows;
  x.type = type_of(buffers, dx);
  x.dy_type = type_of(buffers, dy);
  x.y = address_of(buffers, y, where, y.item);
  x.y_row = y.ld;
  x.dy = address_of(buffers, dy, where, dy.item);
  x.dy_row = dy.ld;
  x.dx = address_of(buffers, dx, where, dx.item);
  x.dx_row = dx.ld;
  out.add(x);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_softmax_backward>(command);
  const double of_value = double(2 * size_of(x.type) + size_of(x.dy_type));
  return model.launch_gap + memory_bound_kernel(model, double(x.rows) * double(x.cols) * of_value).seconds;
}

}  // namespace

constinit const operation ops::softmax_backward::entry{
    "softmax backward", access, defect, cost, describe, lower, SG_BACKEND_SOFTMAX_BACKWARD, seconds};

}  // namespace sg
