// SPDX-License-Identifier: Apache-2.0
#include "ops/optimizer.hpp"

#include "ops/binding.hpp"
#include "ops/describe.hpp"
#include "ops/memory_bound.hpp"
#include "ops/operation.hpp"

namespace sg {

namespace {

using ops::optimizer;

access_mode access(const command &, std::size_t view) {
  return view == optimizer::gradient ? access_mode::read : access_mode::read_write;
}

const char *defect(const buffer_list &buffers, const command &command) {
  const view &parameters = command.views[optimizer::parameters], &gradient = command.views[optimizer::gradient];
  if (!parameters.exists() || parameters.items != 1 || parameters.cols != 1)
    return "an optimizer has one vector of parameters";
  if (!fits(buffers, gradient, parameters)) return "the gradient of an optimizer does not fit the parameters";
  const auto is_state = [&](const view &v) {
    return v.items == 1 && v.rows == parameters.rows && v.cols == 1 &&
           type_of(buffers, v) == accumulator_of(type_of(buffers, parameters));
  };
  const view &first = command.views[optimizer::first], &second = command.views[optimizer::second];
  const optimizer &what = *command.as<optimizer>();
  if (first.exists() ? !is_state(first) : what.is_adam) return "the first moment of an optimizer does not fit";
  return second.exists() == what.is_adam && (!second.exists() || is_state(second))
             ? nullptr
             : "the second moment of an optimizer does not fit";
}

double bytes(double elements, int states, sg_dtype type) {
  return elements * (3 * double(size_of(type)) + 2 * states * double(size_of(accumulator_of(type))));
}

command_cost cost(const device_model &model, const buffer_list &buffers, const command &command) {
  const view &parameters = command.views[optimizer::parameters];
  const int states = command.views[optimizer::first].exists() + command.views[optimizer::second].exists();
  return memory_bound_cost(model, bytes(double(parameters.rows), states, type_of(buffers, parameters)));
}

std::string describe(const buffer_list &, const command &c) {
  return (c.as<optimizer>()->is_adam ? "adam of " : "sgd of ") + std::to_string(c.views[optimizer::parameters].rows);
}

void lower(const buffer_list &buffers, const command &command, const binding &where, backend_commands &out) {
  const optimizer &from = *command.as<optimizer>();
  const auto at = [&](std::size_t index) -> void * {
    const view &v = command.views[index];
    return v.exists() ? address_of(buffers, v, where, v.item) : nullptr;
  };
  auto made = backend_command<sg_backend_optimizer>();
  made.elements = command.views[optimizer::parameters].rows;
  made.type = type_of(buffers, command.views[optimizer::parameters]);
  made.is_adam = from.is_adam;
  made.nesterov = from.nesterov;
  made.decoupled = from.decoupled;
  made.parameters = at(optimizer::parameters);
  made.gradient = at(optimizer::gradient);
  made.first = at(optimizer::first);
  made.second = at(optimizer::second);
  const scalar_pair &own = where.scalars(command.group);
  made.rate = own.alpha.re;
  made.beta1 = from.beta1;
  made.beta2 = from.beta2;
  made.epsilon = from.epsilon;
  made.weight_decay = from.weight_decay;
  made.correction1 = own.beta.re;
  made.correction2 = own.beta.im;
  out.add(made);
}

double seconds(const device_model &model, const sg_backend_command &command, bool) {
  const auto &x = as_backend<sg_backend_optimizer>(command);
  const int states = (x.first != nullptr) + (x.second != nullptr);
  return model.launch_gap + memory_bound_kernel(model, bytes(double(x.elements), states, x.type)).seconds;
}

}  // namespace

constinit const operation ops::optimizer::entry{"optimizer",          access, defect, cost, describe, lower,
                                                SG_BACKEND_OPTIMIZER, seconds};

}  // namespace sg
