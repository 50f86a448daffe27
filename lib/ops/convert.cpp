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

const char *defect(const buffer_list &buffers, const command &command) {
  const view &c = command.views[convert::c], &a = command.views[convert::a];
  if (!c.exists() || !a.exists()) return "a conversion has an operand and a result";
  if (a.items != c.items) return "A and C of a conversion differ in their number of items";
  const bool transposes = command.as<convert>()->op == SG_TRANSPOSE_T;
  const bool fit = a.rows == (transposes ? c.cols : c.rows) && a.cols == (transposes ? c.rows : c.cols);
  if (!fit) return "A and C of a conversion differ in shape";
  const view &divisors = command.views[convert::divisors];
  if (!divisors.exists()) return nullptr;
  const bool divides = !transposes && divisors.rows == c.items * c.cols && divisors.cols == 1 &&
                       type_of(buffers, divisors) == SG_DTYPE_F32 && type_of(buffers, a) == SG_DTYPE_F32;
  return divides ? nullptr : "the divisors of a conversion do not fit its columns";
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) {
  return (c.as<convert>()->op == SG_TRANSPOSE_T ? "transpose" : "convert") + shape_text(c.views[convert::c]);
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
  x.batch = c.items;
  if (c.items > 1) {
    x.stride_a = buffer_of(buffers, a).item_stride / size_of(x.in_type);
    x.stride_c = buffer_of(buffers, c).item_stride / size_of(x.out_type);
  }
  if (const view &divisors = command.views[convert::divisors]; divisors.exists())
    x.divisors = reinterpret_cast<const float *>(address_of(buffers, divisors, where, divisors.item));
  out.add(x);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_convert>(command);
  const double bytes = double(size_of(x.in_type) + size_of(x.out_type));
  return model.launch_gap + memory_bound_kernel(model, double(x.batch) * double(x.m) * double(x.n) * bytes).seconds;
}

}  // namespace

constinit const operation ops::convert::entry{"convert",          access, defect, cost, describe, lower,
                                              SG_BACKEND_CONVERT, seconds};

}  // namespace sg
