// SPDX-License-Identifier: Apache-2.0
#include "ops/norm_backward.hpp"

#include "base/checked.hpp"
#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::norm_backward;

access_mode access(const command &, std::size_t view) {
  return view == norm_backward::dx || view >= norm_backward::products ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &dx = command.views[norm_backward::dx], &gamma = command.views[norm_backward::gamma];
  const view &products = command.views[norm_backward::products];
  if (!dx.exists() || dx.items != 1) return "a norm's gradient has a result of one item";
  if (!fits(buffers, command.views[norm_backward::dy], dx) || !fits(buffers, command.views[norm_backward::x], dx))
    return "operands of a norm's gradient differ in shape or type";
  const sg_dtype type = type_of(buffers, dx);
  if (gamma.exists() &&
      !(gamma.items == 1 && gamma.rows == dx.rows && gamma.cols == 1 && type_of(buffers, gamma) == type))
    return "gamma of a norm's gradient does not fit";
  const std::int64_t groups = ceil_div(dx.cols, command.as<norm_backward>()->group_rows);
  const view &dy_sums = command.views[norm_backward::dy_sums];
  for (const view *each : {&products, &dy_sums})
    if (each->exists() && !(each->items == 1 && each->rows == dx.rows && each->cols == groups &&
                            type_of(buffers, *each) == accumulator_of(type)))
      return "the sums of a norm's gradient do not fit";
  return nullptr;
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) {
  return (c.as<norm_backward>()->kind == SG_NORM_RMS ? "rms norm gradient" : "layer norm gradient") +
         shape_text(c.views[norm_backward::dx]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const norm_backward &from = *command.as<norm_backward>();
  const view &dx = command.views[norm_backward::dx], &dy = command.views[norm_backward::dy];
  const view &x = command.views[norm_backward::x], &gamma = command.views[norm_backward::gamma];
  const view &products = command.views[norm_backward::products];
  auto made = backend_command<sg_backend_norm_backward>();
  made.rows = dx.cols;
  made.cols = dx.rows;
  made.type = type_of(buffers, dx);
  made.kind = from.kind;
  made.epsilon = from.epsilon;
  made.dy = address_of(buffers, dy, where, dy.item);
  made.dy_row = dy.ld;
  made.x = address_of(buffers, x, where, x.item);
  made.x_row = x.ld;
  if (gamma.exists()) made.gamma = address_of(buffers, gamma, where, gamma.item);
  made.dx = address_of(buffers, dx, where, dx.item);
  made.dx_row = dx.ld;
  if (products.exists()) {
    made.products = address_of(buffers, products, where, products.item);
    made.products_row = products.ld;
  }
  const view &dy_sums = command.views[norm_backward::dy_sums];
  if (dy_sums.exists()) {
    made.dy_sums = address_of(buffers, dy_sums, where, dy_sums.item);
    made.dy_sums_row = dy_sums.ld;
  }
  made.group_rows = from.group_rows;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_norm_backward>(command);
  const auto size = double(size_of(x.type)), wide = double(size_of(accumulator_of(x.type)));
  const double bytes = double(x.rows) * double(x.cols) * (3 * size + (x.products ? wide / double(x.group_rows) : 0));
  return model.launch_gap + memory_bound_kernel(model, bytes).seconds;
}

}  // namespace

constinit const operation ops::norm_backward::entry{"norm backward",          access, defect, cost, describe, lower,
                                                    SG_BACKEND_NORM_BACKWARD, seconds};

}  // namespace sg
