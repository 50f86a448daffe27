// SPDX-License-Identifier: Apache-2.0
#include "ops/rotary.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::rotary;

access_mode access(const command &, std::size_t view) {
  return view == rotary::y ? access_mode::write : access_mode::read;
}

bool is_table(const rotary &what, const view &y, const view &table) {
  const std::int64_t positions = what.first_position + std::min(what.first_row + y.cols, what.sequence_length);
  return table.items == 1 && table.rows * 2 == what.rotated_size && table.cols >= positions;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const rotary &what = *command.as<rotary>();
  const view &y = command.views[rotary::y], &cos = command.views[rotary::cos], &sin = command.views[rotary::sin];
  if (!y.exists()) return "a rotary embedding has a result";
  if (y.items != 1) return "a rotary embedding has one item";
  if (!fits(buffers, command.views[rotary::x], y)) return "X and Y of a rotary embedding differ in shape or type";
  if (y.rows % what.head_size != 0 || what.rotated_size > what.head_size)
    return "the heads of a rotary embedding do not fit";
  if (cos.exists() != sin.exists()) return "a rotary embedding has both tables or neither";
  if (!cos.exists()) return nullptr;
  const bool fit = is_table(what, y, cos) && is_table(what, y, sin) && type_of(buffers, cos) == type_of(buffers, sin);
  return fit ? nullptr : "a table of a rotary embedding does not fit";
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) {
  return (c.as<rotary>()->inverse ? "rotary inverse" : "rotary") + shape_text(c.views[rotary::y]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const rotary &from = *command.as<rotary>();
  const view &y = command.views[rotary::y], &x = command.views[rotary::x];
  const view &cos = command.views[rotary::cos], &sin = command.views[rotary::sin];
  auto made = backend_command<sg_backend_rotary>();
  made.rows = y.cols;
  made.cols = y.rows;
  made.head_size = from.head_size;
  made.rotated_size = from.rotated_size;
  made.first_position = from.first_position;
  made.first_row = from.first_row;
  made.sequence_length = from.sequence_length;
  made.theta = from.theta;
  made.type = made.table_type = type_of(buffers, y);
  made.pairs = from.pairs;
  made.inverse = from.inverse;
  made.x = address_of(buffers, x, where, x.item);
  made.x_row = x.ld;
  made.y = address_of(buffers, y, where, y.item);
  made.y_row = y.ld;
  if (cos.exists()) {
    made.table_type = type_of(buffers, cos);
    made.cos = address_of(buffers, cos, where, cos.item);
    made.cos_row = cos.ld;
    made.sin = address_of(buffers, sin, where, sin.item);
    made.sin_row = sin.ld;
  }
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_rotary>(command);
  const double elements = double(x.rows) * double(x.cols);
  const double of_tables = std::min(double(x.sequence_length) * double(x.rotated_size) / 2, elements);
  const double bytes =
      2 * (elements * double(size_of(x.type)) + (x.cos ? of_tables * double(size_of(x.table_type)) : 0));
  return model.launch_gap + memory_bound_kernel(model, bytes).seconds;
}

}  // namespace

constinit const operation ops::rotary::entry{"rotary",          access, defect, cost, describe, lower,
                                             SG_BACKEND_ROTARY, seconds};

}  // namespace sg
