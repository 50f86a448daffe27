// SPDX-License-Identifier: Apache-2.0
#include "ops/cell.hpp"

#include <algorithm>
#include <iterator>

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::cell;

access_mode access(const command &c, std::size_t view) {
  if (view != cell::row) return access_mode::write;
  return c.as<cell>()->keeps ? access_mode::read_write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const cell &what = *command.as<cell>();
  const view &row = command.views[cell::row], &y = command.views[cell::y], &next = command.views[cell::next];
  if (!row.exists() || !y.exists()) return "a cell has a row and a result";
  if (row.items != 1 || y.items != 1) return "a cell has one item";
  if (row.rows != blocks_of_row * y.rows || row.cols != y.cols) return "the row and the result of a cell do not fit";
  const sg_dtype wide = accumulator_of(type_of(buffers, y));
  if (type_of(buffers, row) != wide) return "the row of a cell has another type";
  if (what.step == SG_BACKEND_CELL_RESET && (what.keeps || next.exists())) return "a reset has one result";
  const bool fit = !next.exists() ||
                   (next.items == 1 && next.rows == y.rows && next.cols == y.cols && type_of(buffers, next) == wide);
  return fit ? nullptr : "the next state of a cell does not fit";
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const view &row = command.views[cell::row];
  const double written = command.as<cell>()->keeps ? double(blocks_of_gates) / double(blocks_of_row) : 0;
  double bytes = double(row.rows) * double(row.cols) * double(size_of(type_of(buffers, row))) * (1 + written);
  for (const std::size_t result : {cell::y, cell::next})
    if (const view &x = command.views[result]; x.exists())
      bytes += double(x.rows) * double(x.cols) * double(size_of(type_of(buffers, x)));
  return memory_bound_cost(model, bytes);
}

std::string describe(const buffer_list &, const command &c) {
  const cell &what = *c.as<cell>();
  const char *name = what.step == SG_BACKEND_CELL_RESET ? "reset" : what.kind == SG_CELL_LSTM ? "lstm" : "gru";
  return name + shape_text(c.views[cell::y]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const cell &from = *command.as<cell>();
  const view &row = command.views[cell::row], &y = command.views[cell::y], &next = command.views[cell::next];
  auto x = backend_command<sg_backend_cell>();
  x.hidden = y.rows;
  x.batch = y.cols;
  x.cell = from.kind;
  x.step = from.step;
  x.type = type_of(buffers, y);
  x.keeps = from.keeps;
  std::ranges::copy(gate_blocks(from.kind, from.order), x.gates);
  x.row = address_of(buffers, row, where, row.item);
  x.row_ld = row.ld;
  x.y = address_of(buffers, y, where, y.item);
  x.y_ld = y.ld;
  if (next.exists()) {
    x.next = address_of(buffers, next, where, next.item);
    x.next_ld = next.ld;
  }
  out.add(x);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_cell>(command);
  const double wide = double(size_of(accumulator_of(x.type)));
  const double of_value =
      wide * double(blocks_of_row + (x.keeps ? blocks_of_gates : 0) + (x.next ? 1 : 0)) + double(size_of(x.type));
  return model.launch_gap + memory_bound_kernel(model, double(x.hidden) * double(x.batch) * of_value).seconds;
}

}  // namespace

constinit const operation ops::cell::entry{"cell", access, defect, cost, describe, lower, SG_BACKEND_CELL, seconds};

std::array<std::int32_t, 4> gate_blocks(sg_cell cell, sg_gate_order order) noexcept {
  if (cell != SG_CELL_LSTM) return order == SG_GATE_ORDER_ONNX ? std::array{0, 2, 1, 3} : std::array{0, 1, 2, 3};
  return order == SG_GATE_ORDER_ONNX ? std::array{0, 2, 3, 1} : std::array{0, 1, 2, 3};
}

}  // namespace sg
