// SPDX-License-Identifier: Apache-2.0
#include "ops/gather.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::gather;

access_mode access(const command &, std::size_t view) {
  return view == gather::y ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &y = command.views[gather::y], &table = command.views[gather::table];
  const view &indices = command.views[gather::indices];
  if (!y.exists() || !table.exists() || !indices.exists()) return "a gather has a table, indices and a result";
  if (y.items != 1) return "a gather has one item";
  if (table.rows != y.rows || type_of(buffers, table) != type_of(buffers, y))
    return "the table and the result of a gather differ in their rows or type";
  const bool known = type_of(buffers, indices) == SG_DTYPE_I32 && (indices.rows == 1 || indices.rows == 2);
  return known && indices.cols == y.cols && indices.ld == indices.rows ? nullptr : "indices of a gather do not fit";
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) { return "gather" + shape_text(c.views[gather::y]); }

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const gather &from = *command.as<gather>();
  const view &y = command.views[gather::y], &table = command.views[gather::table];
  const view &indices = command.views[gather::indices];
  const std::int64_t size = size_of(type_of(buffers, y));
  auto made = backend_command<sg_backend_gather>();
  made.rows = y.cols;
  made.row_bytes = y.rows * size;
  made.table_rows = table.cols;
  made.table_row = table.ld * size;
  made.y_row = y.ld * size;
  made.component_bytes = static_cast<std::int32_t>(is_complex(type_of(buffers, y)) ? size / 2 : size);
  made.index_bytes = static_cast<std::int32_t>(4 * indices.rows);
  made.from_end = from.from_end;
  made.fill = from.fill;
  made.table = address_of(buffers, table, where, table.item);
  made.indices = address_of(buffers, indices, where, indices.item);
  made.y = address_of(buffers, y, where, y.item);
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_gather>(command);
  const double of_row = double(x.row_bytes), rows = double(x.rows);
  const double bytes = rows * (of_row + double(x.index_bytes)) + std::min(rows, double(x.table_rows)) * of_row;
  return model.launch_gap + memory_bound_kernel(model, bytes).seconds;
}

}  // namespace

constinit const operation ops::gather::entry{"gather",          access, defect, cost, describe, lower,
                                             SG_BACKEND_GATHER, seconds};

}  // namespace sg
