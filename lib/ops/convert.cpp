// SPDX-License-Identifier: Apache-2.0
#include "ops/convert.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::convert;

access_mode access(const command &, std::size_t view) {
  return view == convert::c ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &, const command &command) {
  const view &c = command.views[convert::c], &a = command.views[convert::a];
  if (!c.exists() || !a.exists()) return "a conversion has an operand and a result";
  if (c.items != 1 || a.items != 1) return "a conversion has one item";
  const bool transposes = command.as<convert>()->op == SG_OP_T;
  const bool fit = a.rows == (transposes ? c.cols : c.rows) && a.cols == (transposes ? c.rows : c.cols);
  return fit ? nullptr : "A and C of a conversion differ in shape";
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) {
  return (c.as<convert>()->op == SG_OP_T ? "transpose" : "convert") + shape_text(c.views[convert::c]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const view &c = command.views[convert::c], &a = command.views[convert::a];
  auto x = backend_command<sg_backend_convert>();
  x.m = c.rows;
  x.n = c.cols;
  x.op = command.as<convert>()->op;
  x.in_type = type_of(buffers, a);
  x.out_type = type_of(buffers, c);
  x.a = address_of(buffers, a, where, a.item);
  x.lda = a.ld;
  x.c = address_of(buffers, c, where, c.item);
  x.ldc = c.ld;
  out.add(x);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_convert>(command);
  const double bytes = double(size_of(x.in_type) + size_of(x.out_type));
  return model.launch_gap + memory_bound_kernel(model, double(x.m) * double(x.n) * bytes).seconds;
}

}  // namespace

constinit const operation ops::convert::entry{"convert",          access, defect, cost, describe, lower,
                                              SG_BACKEND_CONVERT, seconds};

}  // namespace sg
