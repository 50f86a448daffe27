// SPDX-License-Identifier: Apache-2.0
#include "ops/cross_entropy.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::cross_entropy;

access_mode access(const command &, std::size_t view) {
  return view == cross_entropy::result ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &result = command.views[cross_entropy::result], &x = command.views[cross_entropy::x];
  const view &indices = command.views[cross_entropy::indices], &dy = command.views[cross_entropy::dy];
  if (!result.exists() || !x.exists() || !indices.exists()) return "a cross entropy has scores, indices and a result";
  const sg_dtype type = type_of(buffers, x);
  const auto is_column = [&](const view &v) {
    return v.items == 1 && v.rows == 1 && v.cols == x.cols && type_of(buffers, v) == type;
  };
  const bool is_gradient = command.as<cross_entropy>()->is_gradient;
  if (x.items != 1 || !(is_gradient ? fits(buffers, result, x) : is_column(result)))
    return "the result of a cross entropy does not fit the scores";
  if (dy.exists() && !(is_gradient && is_column(dy))) return "dY of a cross entropy does not fit the scores";
  const bool known = type_of(buffers, indices) == SG_DTYPE_I32 && (indices.rows == 1 || indices.rows == 2);
  return known && indices.cols == x.cols && indices.ld == indices.rows ? nullptr
                                                                       : "indices of a cross entropy do not fit";
}

double bytes(double rows, double cols, bool is_gradient, sg_dtype type) {
  return rows * cols * double(size_of(type)) * (is_gradient ? 2 : 1);
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const view &x = command.views[cross_entropy::x];
  const bool is_gradient = command.as<cross_entropy>()->is_gradient;
  return memory_bound_cost(model, bytes(double(x.cols), double(x.rows), is_gradient, type_of(buffers, x)));
}

std::string describe(const buffer_list &, const command &c) {
  return (c.as<cross_entropy>()->is_gradient ? "cross entropy gradient" : "cross entropy") +
         shape_text(c.views[cross_entropy::x]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const cross_entropy &from = *command.as<cross_entropy>();
  const view &result = command.views[cross_entropy::result], &x = command.views[cross_entropy::x];
  const view &indices = command.views[cross_entropy::indices], &dy = command.views[cross_entropy::dy];
  auto made = backend_command<sg_backend_cross_entropy>();
  made.rows = x.cols;
  made.cols = x.rows;
  made.type = type_of(buffers, x);
  made.index_bytes = static_cast<std::int32_t>(4 * indices.rows);
  made.x = address_of(buffers, x, where, x.item);
  made.x_row = x.ld;
  made.indices = address_of(buffers, indices, where, indices.item);
  (from.is_gradient ? made.dx : made.y) = address_of(buffers, result, where, result.item);
  (from.is_gradient ? made.dx_row : made.y_row) = result.ld;
  if (dy.exists()) {
    made.dy = address_of(buffers, dy, where, dy.item);
    made.dy_row = dy.ld;
  }
  made.scale = from.scale;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_cross_entropy>(command);
  const double moved = bytes(double(x.rows), double(x.cols), x.dx != nullptr, x.type);
  return model.launch_gap + memory_bound_kernel(model, moved).seconds;
}

}  // namespace

constinit const operation ops::cross_entropy::entry{"cross entropy",          access, defect, cost, describe, lower,
                                                    SG_BACKEND_CROSS_ENTROPY, seconds};

}  // namespace sg
