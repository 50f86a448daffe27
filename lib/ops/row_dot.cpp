// SPDX-License-Identifier: Apache-2.0
#include "ops/row_dot.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::row_dot;

access_mode access(const command &, std::size_t view) {
  return view == row_dot::y ? access_mode::write : access_mode::read;
}

std::int64_t columns(const command &c) noexcept {
  const view &a = c.views[row_dot::a];
  if (!a.exists()) return 0;
  return c.as<row_dot>()->by_rows ? a.rows : a.cols;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &y = command.views[row_dot::y], &a = command.views[row_dot::a], &b = command.views[row_dot::b];
  if (!y.exists()) return "dot products of rows have a result";
  if (y.items != 1 || y.rows != 1) return "the result of dot products of rows is one row as stored";
  if (a.exists() != b.exists()) return "dot products of rows have two operands or none";
  if (!a.exists()) return nullptr;
  if (!fits(buffers, a, b)) return "A and B of dot products of rows differ in shape or type";
  const std::int64_t rows = command.as<row_dot>()->by_rows ? a.cols : a.rows;
  const bool fit = a.items == 1 && rows == y.cols && type_of(buffers, a) == type_of(buffers, y);
  return fit ? nullptr : "the result of dot products of rows does not fit A";
}

double bytes(double rows, double cols, sg_dtype type) { return rows * (2 * cols + 1) * double(size_of(type)); }

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const view &y = command.views[row_dot::y];
  return memory_bound_cost(model, bytes(double(y.cols), double(columns(command)), type_of(buffers, y)));
}

std::string describe(const buffer_list &, const command &c) {
  return "row dot of " + std::to_string(c.views[row_dot::y].cols) + " x " + std::to_string(columns(c));
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const view &y = command.views[row_dot::y];
  const auto step = [&](const view &x, bool of_row) { return of_row == command.as<row_dot>()->by_rows ? x.ld : 1; };
  auto made = backend_command<sg_backend_row_dot>();
  made.rows = y.cols;
  made.cols = columns(command);
  made.type = type_of(buffers, y);
  if (made.cols > 0) {
    const view &a = command.views[row_dot::a], &b = command.views[row_dot::b];
    made.a = address_of(buffers, a, where, a.item);
    made.a_row = step(a, true);
    made.a_col = step(a, false);
    made.b = address_of(buffers, b, where, b.item);
    made.b_row = step(b, true);
    made.b_col = step(b, false);
  }
  made.y = address_of(buffers, y, where, y.item);
  made.y_row = y.ld;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_row_dot>(command);
  return model.launch_gap + memory_bound_kernel(model, bytes(double(x.rows), double(x.cols), x.type)).seconds;
}

}  // namespace

constinit const operation ops::row_dot::entry{"row dot",          access, defect, cost, describe, lower,
                                              SG_BACKEND_ROW_DOT, seconds};

}  // namespace sg
