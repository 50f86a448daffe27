// SPDX-License-Identifier: Apache-2.0
#include "ops/cell_backward.hpp"

#include <algorithm>

#include "ops/binding.hpp"
#include "ops/cell.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::cell_backward;

access_mode access(const command &, std::size_t view) {
  if (view == cell_backward::dgates) return access_mode::write;
  return view == cell_backward::dstate ? access_mode::read_write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &dgates = command.views[cell_backward::dgates], &row = command.views[cell_backward::row];
  const view &dh = command.views[cell_backward::dh], &dstate = command.views[cell_backward::dstate];
  if (!dgates.exists() || !row.exists() || !dh.exists()) return "gradients of a cell have a row, dh and a result";
  const bool is_lstm = command.as<cell_backward>()->kind == SG_CELL_LSTM;
  if (is_lstm && !dstate.exists()) return "gradients of an LSTM have dc";
  const sg_dtype wide = accumulator_of(type_of(buffers, dgates));
  const auto fits = [&](const view &x, std::int64_t blocks, sg_dtype type) {
    return x.items == 1 && x.rows == blocks * dh.rows && x.cols == dh.cols && type_of(buffers, x) == type;
  };
  const bool fit = fits(dh, 1, wide) && fits(row, blocks_of_row, wide) && (!dstate.exists() || fits(dstate, 1, wide)) &&
                   fits(dgates, blocks_of_gates, type_of(buffers, dgates));
  return fit ? nullptr : "operands of a cell's gradients do not fit";
}

double bytes_of(double values, double wide, double narrow) {
  // The row and dh are read, dstate is read and written, dgates are written.
  return values * (wide * double(blocks_of_row + 3) + narrow * double(blocks_of_gates));
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const view &dh = command.views[cell_backward::dh];
  return memory_bound_cost(model, bytes_of(double(dh.rows) * double(dh.cols), double(size_of(type_of(buffers, dh))),
                                           double(size_of(type_of(buffers, command.views[cell_backward::dgates])))));
}

std::string describe(const buffer_list &, const command &c) {
  return (c.as<cell_backward>()->kind == SG_CELL_LSTM ? "lstm backward" : "gru backward") +
         shape_text(c.views[cell_backward::dh]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const cell_backward &from = *command.as<cell_backward>();
  const view &dgates = command.views[cell_backward::dgates], &row = command.views[cell_backward::row];
  const view &dh = command.views[cell_backward::dh], &dstate = command.views[cell_backward::dstate];
  auto x = backend_command<sg_backend_cell_backward>();
  x.hidden = dh.rows;
  x.batch = dh.cols;
  x.cell = from.kind;
  x.type = type_of(buffers, dgates);
  std::ranges::copy(gate_blocks(from.kind, from.order), x.gates);
  x.row = address_of(buffers, row, where, row.item);
  x.row_ld = row.ld;
  x.dh = address_of(buffers, dh, where, dh.item);
  x.dh_ld = dh.ld;
  x.dgates = address_of(buffers, dgates, where, dgates.item);
  x.dgates_ld = dgates.ld;
  if (dstate.exists()) {
    x.dstate = address_of(buffers, dstate, where, dstate.item);
    x.dstate_ld = dstate.ld;
  }
  out.add(x);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_cell_backward>(command);
  const double bytes =
      bytes_of(double(x.hidden) * double(x.batch), double(size_of(accumulator_of(x.type))), double(size_of(x.type)));
  return model.launch_gap + memory_bound_kernel(model, bytes).seconds;
}

}  // namespace

constinit const operation ops::cell_backward::entry{"cell backward",          access, defect, cost, describe, lower,
                                                    SG_BACKEND_CELL_BACKWARD, seconds};

}  // namespace sg
