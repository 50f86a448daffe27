// SPDX-License-Identifier: Apache-2.0
#include "ops/fill.hpp"

#include <cstring>

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::fill;

access_mode access(const command &, std::size_t) { return access_mode::write; }

const char *defect(const buffer_list &, const command &command) {
  const view &y = command.views[fill::y];
  if (!y.exists()) return "a fill has a result";
  return y.items == 1 ? nullptr : "a fill has one item";
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) { return "fill" + shape_text(c.views[fill::y]); }

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const view &y = command.views[fill::y];
  auto made = backend_command<sg_backend_fill>();
  made.m = y.rows;
  made.n = y.cols;
  made.type = type_of(buffers, y);
  static_assert(sizeof made.pattern == sizeof(sg_scalar));
  std::memcpy(made.pattern, &where.scalars(command.group).alpha, sizeof made.pattern);
  made.y = address_of(buffers, y, where, y.item);
  made.ldy = y.ld;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_fill>(command);
  return model.launch_gap + memory_bound_kernel(model, double(x.m) * double(x.n) * double(size_of(x.type))).seconds;
}

}  // namespace

constinit const operation ops::fill::entry{"fill", access, defect, cost, describe, lower, SG_BACKEND_FILL, seconds};

}  // namespace sg
