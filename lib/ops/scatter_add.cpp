// SPDX-License-Identifier: Apache-2.0
#include "ops/scatter_add.hpp"

#include <algorithm>

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::scatter_add;

access_mode access(const command &, std::size_t view) {
  return view == scatter_add::table ? access_mode::read_write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &table = command.views[scatter_add::table], &x = command.views[scatter_add::x];
  const view &indices = command.views[scatter_add::indices];
  if (!table.exists() || !x.exists() || !indices.exists()) return "a scatter-add has a table, rows and indices";
  if (table.items != 1 || x.items != 1) return "a scatter-add has one item";
  if (table.rows != x.rows || type_of(buffers, table) != type_of(buffers, x))
    return "the table and the rows of a scatter-add differ in their columns or type";
  const bool known = type_of(buffers, indices) == SG_DTYPE_I32 && (indices.rows == 1 || indices.rows == 2);
  return known && indices.cols == x.cols && indices.ld == indices.rows ? nullptr
                                                                       : "indices of a scatter-add do not fit";
}

// X is read; as many rows of the table are read and written.
double bytes(double rows, double cols, double table_rows, sg_dtype type) {
  return (rows + 2 * std::min(rows, table_rows)) * cols * double(size_of(type));
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const view &table = command.views[scatter_add::table], &x = command.views[scatter_add::x];
  return memory_bound_cost(model, bytes(double(x.cols), double(x.rows), double(table.cols), type_of(buffers, table)));
}

std::string describe(const buffer_list &, const command &c) {
  return "scatter add" + shape_text(c.views[scatter_add::x]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const view &table = command.views[scatter_add::table], &x = command.views[scatter_add::x];
  const view &indices = command.views[scatter_add::indices];
  auto made = backend_command<sg_backend_scatter_add>();
  made.rows = x.cols;
  made.cols = x.rows;
  made.table_rows = table.cols;
  made.type = type_of(buffers, table);
  made.index_bytes = static_cast<std::int32_t>(4 * indices.rows);
  made.from_end = command.as<scatter_add>()->from_end;
  made.x = address_of(buffers, x, where, x.item);
  made.x_row = x.ld;
  made.indices = address_of(buffers, indices, where, indices.item);
  made.table = address_of(buffers, table, where, table.item);
  made.table_row = table.ld;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_scatter_add>(command);
  const double moved = bytes(double(x.rows), double(x.cols), double(x.table_rows), x.type);
  return model.launch_gap + memory_bound_kernel(model, moved).seconds;
}

}  // namespace

constinit const operation ops::scatter_add::entry{"scatter add",          access, defect, cost, describe, lower,
                                                  SG_BACKEND_SCATTER_ADD, seconds};

}  // namespace sg
