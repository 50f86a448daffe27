// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::softmax;

access_mode access(const command &, std::size_t view) {
  return view == softmax::x ? access_mode::read : access_mode::write;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &y = command.views[softmax::y], &x = command.views[softmax::x];
  if (!y.exists()) return "a softmax has a result";
  if (y.items != 1) return "a softmax has one item";
  if (!x.exists() || x.rows != y.rows || x.cols != y.cols || x.items != 1)
    return "X and Y of a softmax differ in shape";
  const sg_dtype from = type_of(buffers, x), to = type_of(buffers, y);
  const bool rounds =
      from == SG_DTYPE_F32 && to != from && accumulator_of(to) == from && command.as<softmax>()->by_rows;
  if (from != to && !rounds) return "X and Y of a softmax differ in type";
  const view &sums = command.views[softmax::sums];
  const bool fit = rounds && sums.rows == y.cols && sums.cols == 1 && type_of(buffers, sums) == SG_DTYPE_F32;
  return !sums.exists() || fit ? nullptr : "the sums of a softmax do not fit its rows";
}

// X is read once, Y is written once: a row stays in registers or caches between its passes.
command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) {
  return (c.as<softmax>()->mask == SG_MASK_CAUSAL ? "softmax causal" : "softmax") + shape_text(c.views[softmax::y]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const softmax &from = *command.as<softmax>();
  const view &y = command.views[softmax::y], &x = command.views[softmax::x];
  auto made = backend_command<sg_backend_softmax>();
  made.rows = from.by_rows ? y.cols : y.rows;
  made.cols = from.by_rows ? y.rows : y.cols;
  made.type = type_of(buffers, y);
  made.mask = from.mask;
  made.mask_offset = from.mask_offset;
  made.mask_row = from.mask_row;
  made.mask_rows = from.mask_rows;
  if (type_of(buffers, x) != made.type) made.x_type = type_of(buffers, x);
  made.x = address_of(buffers, x, where, x.item);
  made.x_row = from.by_rows ? x.ld : 1;
  made.x_col = from.by_rows ? 1 : x.ld;
  made.y = address_of(buffers, y, where, y.item);
  made.y_row = from.by_rows ? y.ld : 1;
  made.y_col = from.by_rows ? 1 : y.ld;
  if (const view &sums = command.views[softmax::sums]; sums.exists())
    made.sums = reinterpret_cast<float *>(address_of(buffers, sums, where, sums.item));
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_softmax>(command);
  const auto from = double(size_of(x.x_type ? x.x_type : x.type)), to = double(size_of(x.type));
  return model.launch_gap + memory_bound_kernel(model, double(x.rows) * double(x.cols) * (from + to)).seconds;
}

}  // namespace

constinit const operation ops::softmax::entry{"softmax",          access, defect, cost, describe, lower,
                                              SG_BACKEND_SOFTMAX, seconds};

}  // namespace sg
