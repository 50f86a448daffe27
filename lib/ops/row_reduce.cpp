// SPDX-License-Identifier: Apache-2.0
#include "ops/row_reduce.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::row_reduce;

access_mode access(const command &, std::size_t view) {
  return view == row_reduce::y ? access_mode::write : access_mode::read;
}

std::int64_t columns(const command &c) noexcept {
  const view &x = c.views[row_reduce::x];
  if (!x.exists()) return 0;
  return c.as<row_reduce>()->by_rows ? x.rows : x.cols;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &y = command.views[row_reduce::y], &x = command.views[row_reduce::x];
  if (!y.exists()) return "a reduction of rows has a result";
  if (y.items != 1 || y.rows != 1) return "the result of a reduction of rows is one row as stored";
  if (!x.exists()) return nullptr;
  const std::int64_t rows = command.as<row_reduce>()->by_rows ? x.cols : x.rows;
  const bool fit = x.items == 1 && rows == y.cols && type_of(buffers, x) == type_of(buffers, y);
  return fit ? nullptr : "the result of a reduction of rows does not fit X";
}

double bytes(double rows, double cols, sg_dtype type) { return rows * (cols + 1) * double(size_of(type)); }

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const view &y = command.views[row_reduce::y];
  return memory_bound_cost(model, bytes(double(y.cols), double(columns(command)), type_of(buffers, y)));
}

std::string describe(const buffer_list &, const command &c) {
  return "row reduce of " + std::to_string(c.views[row_reduce::y].cols) + " x " + std::to_string(columns(c));
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const row_reduce &from = *command.as<row_reduce>();
  const view &y = command.views[row_reduce::y];
  auto made = backend_command<sg_backend_row_reduce>();
  made.rows = y.cols;
  made.cols = columns(command);
  made.type = type_of(buffers, y);
  made.reduction = from.reduction;
  if (made.cols > 0) {
    const view &x = command.views[row_reduce::x];
    made.x = address_of(buffers, x, where, x.item);
    made.x_row = from.by_rows ? x.ld : 1;
    made.x_col = from.by_rows ? 1 : x.ld;
  }
  made.y = address_of(buffers, y, where, y.item);
  made.y_row = y.ld;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_row_reduce>(command);
  return model.launch_gap + memory_bound_kernel(model, bytes(double(x.rows), double(x.cols), x.type)).seconds;
}

}  // namespace

constinit const operation ops::row_reduce::entry{"row reduce",          access, defect, cost, describe, lower,
                                                 SG_BACKEND_ROW_REDUCE, seconds};

}  // namespace sg
