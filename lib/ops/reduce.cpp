// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce.hpp"

#include <algorithm>

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::reduce;

access_mode access(const command &c, std::size_t view) {
  if (view != reduce::c) return access_mode::read;
  return c.as<reduce>()->beta == scalar_role::zero ? access_mode::write : access_mode::read_write;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &c = command.views[reduce::c], &parts = command.views[reduce::parts];
  const view &bias = command.views[reduce::bias];
  if (!c.exists()) return "a reduction has a result";
  if (parts.exists() && (parts.rows != c.rows || parts.cols != c.cols))
    return "a reduction's parts and result differ in shape";
  return bias.exists() ? defect_of_bias(buffers, bias, c) : nullptr;
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &c) {
  const kernel_cost kernel = reduce_cost(model, shape_of_reduce(buffers, c));
  command_cost cost;
  cost.amount = kernel.seconds;
  cost.chip_share = kernel.chip_share;
  cost.memory_share = kernel.memory_share;
  cost.delay_idle = std::max(model.launch_latency, model.launch_gap);
  cost.delay_queued = model.launch_gap;
  return cost;
}

std::string describe(const buffer_list &buffers, const command &command) {
  const view &c = command.views[reduce::c], &parts = command.views[reduce::parts];
  return "reduce" + shape_text(c) + operand_text(buffers, parts.exists() ? parts : c);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const reduce &from = *command.as<reduce>();
  const view &c = command.views[reduce::c], &parts = command.views[reduce::parts];
  const view &bias = command.views[reduce::bias];
  auto r = backend_command<sg_backend_reduce>();
  r.m = c.rows;
  r.n = c.cols;
  r.out_type = type_of(buffers, c);
  r.part_type = accumulator_of(r.out_type);
  r.beta = value_of(from.beta, where.scalars(command.group).beta);
  r.ldc = c.ld;
  if (parts.exists()) {
    const buffer &b = buffer_of(buffers, parts);
    r.part_type = b.type;
    r.parts = address_of(buffers, parts, where, parts.item);
    r.parts_count = parts.items;
    r.part_ld = parts.ld;
    r.part_stride = b.item_stride / size_of(b.type);
  }
  r.activation = from.activation;
  if (bias.exists()) {
    r.bias = address_of(buffers, bias, where, bias.item);
    r.bias_per_row = is_per_row(bias, c);
  }
  for (std::int64_t i = 0; i < c.items; ++i) {  // without parts: each item is scaled
    r.c = address_of(buffers, c, where, c.item + i);
    out.add(r);
  }
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &r = as_backend<sg_backend_reduce>(command);
  return reduce_seconds(model, {r.m, r.n, r.parts_count, r.part_type, r.out_type, r.beta.re != 0 || r.beta.im != 0});
}

}  // namespace

constinit const operation ops::reduce::entry{"reduce",          access, defect, cost, describe, lower,
                                             SG_BACKEND_REDUCE, seconds};

reduce_shape shape_of_reduce(const buffer_list &buffers, const command &command) {
  const view &c = command.views[reduce::c], &parts = command.views[reduce::parts];
  const sg_dtype out = type_of(buffers, c);
  return {c.rows,
          c.cols,
          parts.exists() ? parts.items : 0,
          parts.exists() ? type_of(buffers, parts) : out,
          out,
          command.as<reduce>()->beta != scalar_role::zero};
}

kernel_cost reduce_cost(const device_model &model, const reduce_shape &r) {
  const double bytes =
      double(r.m) * double(r.n) *
      (double(r.parts) * double(size_of(r.part_type)) + double(size_of(r.out_type)) * (r.reads_c ? 2 : 1));
  return with_memory(model, {0, 1, 0}, bytes);
}

double reduce_seconds(const device_model &model, const reduce_shape &r) {
  return model.launch_gap + reduce_cost(model, r).seconds;
}

}  // namespace sg
