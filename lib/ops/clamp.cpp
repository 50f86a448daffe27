// SPDX-License-Identifier: Apache-2.0
#include "ops/clamp.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::clamp;

access_mode access(const command &, std::size_t view) {
  return view == clamp::y ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &y = command.views[clamp::y], &x = command.views[clamp::x], &dy = command.views[clamp::dy];
  if (!y.exists()) return "a clamp has a result";
  if (y.items != 1) return "a clamp has one item";
  if (!fits(buffers, x, y)) return "X and the result of a clamp differ in shape or type";
  return !dy.exists() || fits(buffers, dy, y) ? nullptr : "dY and the result of a clamp differ in shape or type";
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) {
  return (c.views[clamp::dy].exists() ? "clamp gradient" : "clamp") + shape_text(c.views[clamp::y]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const view &y = command.views[clamp::y], &x = command.views[clamp::x], &dy = command.views[clamp::dy];
  const sg_scalar &limits = where.scalars(command.group).alpha;
  auto made = backend_command<sg_backend_clamp>();
  made.m = y.rows;
  made.n = y.cols;
  made.type = type_of(buffers, y);
  made.low = limits.re;
  made.high = limits.im;
  made.x = address_of(buffers, x, where, x.item);
  made.ldx = x.ld;
  if (dy.exists()) {
    made.dy = address_of(buffers, dy, where, dy.item);
    made.lddy = dy.ld;
  }
  made.y = address_of(buffers, y, where, y.item);
  made.ldy = y.ld;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_clamp>(command);
  const double elements = double(x.m) * double(x.n) * (x.dy ? 3 : 2);
  return model.launch_gap + memory_bound_kernel(model, elements * double(size_of(x.type))).seconds;
}

}  // namespace

constinit const operation ops::clamp::entry{"clamp", access, defect, cost, describe, lower, SG_BACKEND_CLAMP, seconds};

}  // namespace sg
