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

access_mode access(const command &c, std::size_t view) {
  const sg_backend_conv_gradient gradient = c.as<conv>()->gradient;
  const std::size_t result = gradient == SG_BACKEND_CONV_OF_X   ? conv::x
                             : gradient == SG_BACKEND_CONV_OF_W ? conv::w
                                                                : conv::y;
  return view == result || view == conv::scratch ? access_mode::write : access_mode::read;
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
    if (each->exists() && (each != &w || c.gradient != SG_BACKEND_CONV_OF_W) &&
        type_of(buffers, *each) != type_of(buffers, y))
      return "the operands of a convolution differ in type";
  if (bias.exists() && c.gradient != SG_BACKEND_CONV_OF_Y) return "the gradient of a convolution has no bias";
  return nullptr;
}

// Of a GPU's library, measured on an H200 with cuDNN 9.14 (no record is kept): half of the host's time of a call, of
// which work before it hides some, and how much longer a convolution in f32 takes than its GEMM, without Winograd's
// method.
constexpr double gpu_call_seconds = 6e-6, gpu_f32_factor = 1.35;

// As that of GEMMs that take the windows on the fly. A GPU's kernels for short types take NHWC images with channels in
// eights: others are brought to that order, and the result back, in which reads or writes are far apart.
kernel_cost kernel_of(const device_model &model, const sg_backend_conv &c) {
  const sg_backend_windows &w = c.of;
  const std::int64_t channels = w.channels / w.groups, taps = std::int64_t{w.kernel_h} * w.kernel_w;
  const bool by_tensor_cores = !model.lanes_are_cores && (c.type == SG_DTYPE_F16 || c.type == SG_DTYPE_BF16);
  gemm_shape shape;
  shape.m = c.out_channels / w.groups, shape.n = w.images * w.out_h * w.out_w;
  shape.k = taps * (by_tensor_cores && w.groups == 1 ? (channels + 7) / 8 * 8 : channels);
  shape.batch = w.groups;
  shape.in_type = shape.out_type = c.type;
  kernel_cost cost = gemm_cost(model, shape);
  if (!model.lanes_are_cores && c.type == SG_DTYPE_F32) cost.seconds *= gpu_f32_factor;
  if (!by_tensor_cores || w.channel == 1) return cost;
  constexpr double accesses = 3;  // as so many in sequence
  const double elements = double(w.channels) * w.height * w.width + double(c.out_channels) * w.out_h * w.out_w;
  const double seconds = accesses * double(w.images) * elements * double(size_of(c.type)) / model.memory_rate;
  cost.memory_share = (cost.memory_share * cost.seconds + seconds) / (cost.seconds + seconds);
  cost.seconds += seconds;
  return cost;
}

// Without addresses.
sg_backend_conv lowered(const buffer_list &buffers, const command &command) {
  const conv &c = *command.as<conv>();
  auto made = backend_command<sg_backend_conv>();
  made.of = lower_images(c, command.views[conv::x]);
  made.y_image = command.views[conv::y].ld;
  made.out_channels = c.out_channels;
  made.type = type_of(buffers, command.views[conv::y]);
  made.activation = c.activation;
  made.gradient = c.gradient;
  const sg_dtype w_type = type_of(buffers, command.views[conv::w]);
  if (w_type != made.type) made.w_type = w_type;
  return made;
}

double call_seconds(const device_model &model) { return model.lanes_are_cores ? 0 : gpu_call_seconds; }

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const kernel_cost alone = kernel_of(model, lowered(buffers, command));
  command_cost cost;
  cost.amount = alone.seconds;
  cost.chip_share = alone.chip_share;
  cost.memory_share = alone.memory_share;
  const double of_call = call_seconds(model);
  cost.delay_idle = std::max(model.launch_latency, model.launch_gap) + of_call;
  cost.delay_queued = model.launch_gap + of_call;
  return cost;
}

std::string describe(const buffer_list &, const command &c) { return "conv" + shape_text(c.views[conv::y]); }

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const view &y = command.views[conv::y], &x = command.views[conv::x], &w = command.views[conv::w];
  const view &bias = command.views[conv::bias];
  sg_backend_conv made = lowered(buffers, command);
  made.x = address_of(buffers, x, where, x.item);
  made.w = address_of(buffers, w, where, w.item);
  if (bias.exists()) made.bias = address_of(buffers, bias, where, bias.item);
  made.y = address_of(buffers, y, where, y.item);
  const view &scratch = command.views[conv::scratch];
  if (scratch.exists()) {
    made.scratch = address_of(buffers, scratch, where, scratch.item);
    made.scratch_bytes = scratch.rows * size_of(type_of(buffers, scratch));
  }
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  return model.launch_gap + call_seconds(model) + kernel_of(model, as_backend<sg_backend_conv>(command)).seconds;
}

}  // namespace

constinit const operation ops::conv::entry{"conv", access, defect, cost, describe, lower, SG_BACKEND_CONV, seconds};

}  // namespace sg
