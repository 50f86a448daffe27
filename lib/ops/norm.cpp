// SPDX-License-Identifier: Apache-2.0
#include "ops/norm.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::norm;

access_mode access(const command &, std::size_t view) {
  return view == norm::y ? access_mode::write : access_mode::read;
}

bool is_vector(const buffer_list &buffers, const view &values, std::int64_t count, sg_dtype type) {
  return !values.exists() ||
         (values.rows == count && values.cols == 1 && values.items == 1 && type_of(buffers, values) == type);
}

const char *defect(const buffer_list &buffers, const command &command) {
  const norm &what = *command.as<norm>();
  const view &y = command.views[norm::y], &beta = command.views[norm::beta];
  if (!y.exists()) return "a norm has a result";
  if (y.items != 1) return "a norm has one item";
  if (!fits(buffers, command.views[norm::x], y)) return "X and Y of a norm differ in shape or type";
  if (beta.exists() && what.kind == SG_NORM_RMS) return "an RMS norm has no beta";
  const std::int64_t count = what.by_rows ? y.rows : y.cols;
  const sg_dtype type = type_of(buffers, y);
  const bool fit = is_vector(buffers, command.views[norm::gamma], count, type) && is_vector(buffers, beta, count, type);
  return fit ? nullptr : "gamma or beta of a norm does not fit";
}

// X is read once, Y is written once: a row stays in registers or caches between its passes.
command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) {
  return (c.as<norm>()->kind == SG_NORM_RMS ? "rms norm" : "layer norm") + shape_text(c.views[norm::y]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const norm &from = *command.as<norm>();
  const view &y = command.views[norm::y], &x = command.views[norm::x];
  const view &gamma = command.views[norm::gamma], &beta = command.views[norm::beta];
  auto made = backend_command<sg_backend_norm>();
  made.rows = from.by_rows ? y.cols : y.rows;
  made.cols = from.by_rows ? y.rows : y.cols;
  made.type = type_of(buffers, y);
  made.kind = from.kind;
  made.epsilon = from.epsilon;
  made.x = address_of(buffers, x, where, x.item);
  made.x_row = from.by_rows ? x.ld : 1;
  made.x_col = from.by_rows ? 1 : x.ld;
  made.y = address_of(buffers, y, where, y.item);
  made.y_row = from.by_rows ? y.ld : 1;
  made.y_col = from.by_rows ? 1 : y.ld;
  if (gamma.exists()) made.gamma = address_of(buffers, gamma, where, gamma.item);
  if (beta.exists()) made.beta = address_of(buffers, beta, where, beta.item);
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_norm>(command);
  const double rows = 2 * double(x.rows) + (x.gamma ? 1 : 0) + (x.beta ? 1 : 0);
  return model.launch_gap + memory_bound_kernel(model, rows * double(x.cols) * double(size_of(x.type))).seconds;
}

}  // namespace

constinit const operation ops::norm::entry{"norm", access, defect, cost, describe, lower, SG_BACKEND_NORM, seconds};

}  // namespace sg
