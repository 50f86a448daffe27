// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::elementwise;
using ops::takes_two;

access_mode access(const command &, std::size_t view) {
  return view == elementwise::c ? access_mode::write : access_mode::read;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &c = command.views[elementwise::c], &a = command.views[elementwise::a], &b = command.views[elementwise::b];
  if (!c.exists()) return "an elementwise function has a result";
  if (c.items != 1) return "an elementwise function has one item";
  if (!fits(buffers, a, c)) return "A and C of an elementwise function differ in shape or type";
  if (b.exists() != takes_two(command.as<elementwise>()->function)) return "B goes with a function of two operands";
  return !b.exists() || fits(buffers, b, c) ? nullptr : "B and C of an elementwise function differ in shape or type";
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  return memory_bound_cost(model, buffers, command);
}

std::string describe(const buffer_list &, const command &c) {
  return std::string(ops::name_of(c.as<elementwise>()->function)) + shape_text(c.views[elementwise::c]);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const view &c = command.views[elementwise::c], &a = command.views[elementwise::a], &b = command.views[elementwise::b];
  auto x = backend_command<sg_backend_elementwise>();
  x.m = c.rows;
  x.n = c.cols;
  x.type = type_of(buffers, c);
  x.function = command.as<elementwise>()->function;
  x.a = address_of(buffers, a, where, a.item);
  x.lda = a.ld;
  if (b.exists()) {
    x.b = address_of(buffers, b, where, b.item);
    x.ldb = b.ld;
  }
  x.c = address_of(buffers, c, where, c.item);
  x.ldc = c.ld;
  out.add(x);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_elementwise>(command);
  const double elements = double(x.m) * double(x.n) * (x.b ? 3 : 2);
  return model.launch_gap + memory_bound_kernel(model, elements * double(size_of(x.type))).seconds;
}

}  // namespace

const char *ops::name_of(sg_function function) {
  switch (function) {
    case SG_FUNCTION_RELU: return "relu";
    case SG_FUNCTION_GELU: return "gelu";
    case SG_FUNCTION_GELU_ERF: return "gelu erf";
    case SG_FUNCTION_SILU: return "silu";
    case SG_FUNCTION_SIGMOID: return "sigmoid";
    case SG_FUNCTION_TANH: return "tanh";
    case SG_FUNCTION_ADD: return "add";
    case SG_FUNCTION_MULTIPLY: return "multiply";
    case SG_FUNCTION_RELU_GRADIENT: return "relu gradient";
    case SG_FUNCTION_GELU_GRADIENT: return "gelu gradient";
    case SG_FUNCTION_GELU_ERF_GRADIENT: return "gelu erf gradient";
    case SG_FUNCTION_SILU_GRADIENT: return "silu gradient";
    case SG_FUNCTION_SIGMOID_GRADIENT: return "sigmoid gradient";
    case SG_FUNCTION_TANH_GRADIENT: return "tanh gradient";
  }
  return "no function";
}

constinit const operation ops::elementwise::entry{"elementwise",          access, defect, cost, describe, lower,
                                                  SG_BACKEND_ELEMENTWISE, seconds};

}  // namespace sg
