// SPDX-License-Identifier: Apache-2.0
#include "ops/axpby.hpp"

#include <algorithm>

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::axpby;

access_mode access(const command &c, std::size_t view) {
  if (view == axpby::a) return access_mode::read;
  return c.as<axpby>()->beta == scalar_role::zero ? access_mode::write : access_mode::read_write;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &c = command.views[axpby::c], &a = command.views[axpby::a];
  if (!c.exists()) return "a scale-and-add has a result";
  if (c.items != 1) return "a scale-and-add has one item";
  if (a.exists() != (command.as<axpby>()->alpha != scalar_role::zero)) return "A goes with a factor";
  if (!a.exists()) return nullptr;
  if (a.rows != c.rows || a.cols != c.cols || a.items != c.items) return "A and C of a scale-and-add differ in shape";
  return type_of(buffers, a) == type_of(buffers, c) ? nullptr : "A and C of a scale-and-add differ in type";
}

// Memory bound: A and C are read, C is written.
kernel_cost kernel(const device_model &model, double elements, sg_dtype type, bool reads_a, bool reads_c) {
  return with_memory(model, {0, 1, 0}, elements * double(size_of(type)) * (1 + int{reads_a} + int{reads_c}));
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const view &c = command.views[axpby::c];
  const kernel_cost alone = kernel(model, double(c.rows) * double(c.cols), type_of(buffers, c),
                                   command.views[axpby::a].exists(), command.as<axpby>()->beta != scalar_role::zero);
  command_cost cost;
  cost.amount = alone.seconds;
  cost.chip_share = alone.chip_share;
  cost.memory_share = alone.memory_share;
  cost.delay_idle = std::max(model.launch_latency, model.launch_gap);
  cost.delay_queued = model.launch_gap;
  return cost;
}

std::string describe(const buffer_list &, const command &c) { return "axpby" + shape_text(c.views[axpby::c]); }

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const axpby &from = *command.as<axpby>();
  const view &c = command.views[axpby::c], &a = command.views[axpby::a];
  const scalar_pair &own = where.scalars(command.group);
  auto x = backend_command<sg_backend_axpby>();
  x.m = c.rows;
  x.n = c.cols;
  x.type = type_of(buffers, c);
  x.alpha = value_of(from.alpha, own.alpha);
  x.beta = value_of(from.beta, own.beta);
  if (a.exists()) {
    x.a = address_of(buffers, a, where, a.item);
    x.lda = a.ld;
  }
  x.c = address_of(buffers, c, where, c.item);
  x.ldc = c.ld;
  x.activation = from.activation;
  out.add(x);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_axpby>(command);
  return model.launch_gap +
         kernel(model, double(x.m) * double(x.n), x.type, x.a != nullptr, x.beta.re != 0 || x.beta.im != 0).seconds;
}

}  // namespace

constinit const operation ops::axpby::entry{"axpby", access, defect, cost, describe, lower, SG_BACKEND_AXPBY, seconds};

}  // namespace sg
