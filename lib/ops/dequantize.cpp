// SPDX-License-Identifier: Apache-2.0
#include "ops/dequantize.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::dequantize;

access_mode access(const command &, std::size_t view) {
  return view == dequantize::y ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const dequantize &what = *command.as<dequantize>();
  const view &y = command.views[dequantize::y], &x = command.views[dequantize::x];
  const view &scales = command.views[dequantize::scales], &zero_points = command.views[dequantize::zero_points];
  if (!y.exists() || !x.exists() || !scales.exists()) return "a dequantization has values, scales and a result";
  if (y.items != 1) return "a dequantization has one item";
  if (x.cols != y.cols || x.rows * what.values_in_byte() != y.rows || type_of(buffers, x) != SG_DTYPE_I8)
    return "X and Y of a dequantization do not fit";
  if (scales.cols != y.cols || scales.rows * what.block_size != y.rows) return "scales of a dequantization do not fit";
  const bool fit = !zero_points.exists() || (zero_points.cols == y.cols && zero_points.rows == scales.rows &&
                                             type_of(buffers, zero_points) == SG_DTYPE_I8);
  return fit ? nullptr : "zero points of a dequantization do not fit";
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) {
  return (c.as<dequantize>()->quantization == SG_QUANTIZATION_I4 ? "dequantize i4" : "dequantize i8") +
         shape_text(c.views[dequantize::y]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const dequantize &from = *command.as<dequantize>();
  const view &y = command.views[dequantize::y], &x = command.views[dequantize::x];
  const view &scales = command.views[dequantize::scales], &zero_points = command.views[dequantize::zero_points];
  auto made = backend_command<sg_backend_dequantize>();
  made.rows = y.cols;
  made.cols = y.rows;
  made.block_size = from.block_size;
  made.quantization = from.quantization;
  made.scale_type = type_of(buffers, scales);
  made.type = type_of(buffers, y);
  made.x = address_of(buffers, x, where, x.item);
  made.x_row = x.ld;
  made.scales = address_of(buffers, scales, where, scales.item);
  made.scales_row = scales.ld;
  if (zero_points.exists()) {
    made.zero_points = reinterpret_cast<const std::int8_t *>(address_of(buffers, zero_points, where, zero_points.item));
    made.zero_points_row = zero_points.ld;
  }
  made.y = address_of(buffers, y, where, y.item);
  made.y_row = y.ld;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_dequantize>(command);
  const double of_value = (x.quantization == SG_QUANTIZATION_I4 ? 0.5 : 1) + double(size_of(x.type));
  const double of_block = double(size_of(x.scale_type)) + (x.zero_points ? 1 : 0);
  const double bytes = double(x.rows) * double(x.cols) * (of_value + of_block / double(x.block_size));
  return model.launch_gap + memory_bound_kernel(model, bytes).seconds;
}

}  // namespace

constinit const operation ops::dequantize::entry{"dequantize",          access, defect, cost, describe, lower,
                                                 SG_BACKEND_DEQUANTIZE, seconds};

}  // namespace sg
