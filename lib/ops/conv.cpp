// SPDX-License-Identifier: Apache-2.0
#include "ops/conv.hpp"

#include <algorithm>

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::conv;

access_mode access(const command &, std::size_t view) {
  return view == conv::y ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const conv &c = *command.as<conv>();
  const view &y = command.views[conv::y], &x = command.views[conv::x], &w = command.views[conv::w];
  const view &bias = command.views[conv::bias];
  if (!y.exists() || !x.exists() || !w.exists()) return "a convolution has X, W and Y";
  if (y.items != 1 || x.items != 1) return "a convolution has one item";
  if (x.cols != y.cols || x.rows != c.span_of_image() || y.rows != c.out_channels * c.positions_of_image())
    return "the images of a convolution do not fit";
  if (w.rows != c.columns() / c.groups || w.cols != c.out_channels || w.ld != w.rows)
    return "the filters of a convolution do not fit";
  if (bias.exists() && (bias.rows != c.out_channels || bias.cols != 1)) return "the bias of a convolution does not fit";
  for (const view *each : {&x, &w, &bias})
    if (each->exists() && type_of(buffers, *each) != type_of(buffers, y))
      return "the operands of a convolution differ in type";
  return nullptr;
}

// As that of GEMMs that take the windows on the fly.
kernel_cost kernel_of(const device_model &model, std::int64_t groups, std::int64_t outputs, std::int64_t windows,
                      std::int64_t columns, sg_dtype type) {
  gemm_shape shape;
  shape.m = outputs / groups, shape.n = windows, shape.k = columns / groups;
  shape.batch = groups;
  shape.in_type = shape.out_type = type;
  return gemm_cost(model, shape);
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const conv &c = *command.as<conv>();
  const view &y = command.views[conv::y];
  const kernel_cost alone =
      kernel_of(model, c.groups, c.out_channels, y.cols * c.positions_of_image(), c.columns(), type_of(buffers, y));
  command_cost cost;
  cost.amount = alone.seconds;
  cost.chip_share = alone.chip_share;
  cost.memory_share = alone.memory_share;
  cost.delay_idle = std::max(model.launch_latency, model.launch_gap);
  cost.delay_queued = model.launch_gap;
  return cost;
}

std::string describe(const buffer_list &, const command &c) { return "conv" + shape_text(c.views[conv::y]); }

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const conv &c = *command.as<conv>();
  const view &y = command.views[conv::y], &x = command.views[conv::x], &w = command.views[conv::w];
  const view &bias = command.views[conv::bias];
  auto made = backend_command<sg_backend_conv>();
  made.of = lower_images(c, x);
  made.y_image = y.ld;
  made.x = address_of(buffers, x, where, x.item);
  made.w = address_of(buffers, w, where, w.item);
  if (bias.exists()) made.bias = address_of(buffers, bias, where, bias.item);
  made.y = address_of(buffers, y, where, y.item);
  made.out_channels = c.out_channels;
  made.type = type_of(buffers, y);
  made.activation = c.activation;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_conv>(command);
  const std::int64_t columns = std::int64_t{x.of.channels} * x.of.kernel_h * x.of.kernel_w;
  return model.launch_gap +
         kernel_of(model, x.of.groups, x.out_channels, x.of.images * x.of.out_h * x.of.out_w, columns, x.type).seconds;
}

}  // namespace

constinit const operation ops::conv::entry{"conv", access, defect, cost, describe, lower, SG_BACKEND_CONV, seconds};

}  // namespace sg
