// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/optimizer.h>

#include <cmath>
#include <string>

#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

namespace {

// `least` <= value, and value < `bound`, or <= if `with_bound`.
void require_number(double value, double least, double bound, bool with_bound, const char *desc, const char *field,
                    const char *rule) {
  if (!(value >= least && (with_bound ? value <= bound : value < bound)))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is %g; it must be %s", desc, field, value, rule);
}
void require_finite(double value, double least, const char *desc, const char *field) {
  require_number(value, least, HUGE_VAL, false, desc, field, least == 0 ? "finite and not negative" : "finite");
}

// The vectors of a step. `Desc` has parameters, gradient, elements and dtype.
template <class Desc>
class checked_step {
 public:
  checked_step(context &on, const checked_submit &order, const Desc &d, const char *name)
      : d_(d), name_(name), x_(on, order) {
    require_layer_type(d.dtype, name);
    require_range(d.elements, 0, INT64_MAX / 64, (std::string(name) + "->elements").c_str());
    x_.allows_in_place = false;
    vectors_[0] = given_values(name, "parameters", d.parameters, d.elements, 1, d.dtype);
    vectors_[1] = given_values(name, "gradient", d.gradient, d.elements, 1, d.dtype);
    add_operand(x_, vectors_[0], ops::optimizer::parameters);
    add_operand(x_, vectors_[1], ops::optimizer::gradient);
  }
  template <class Pointer>
  void add_state(std::size_t view, const char *field, const Pointer &values) {
    vectors_[view] = given_values(name_, field, values, d_.elements, 1, accumulator_of(d_.dtype));
    add_operand(x_, vectors_[view], view);
  }
  // The rate, and Adam's corrections, change from step to step; the form stays.
  void set_scalars(double rate, double correction1, double correction2) {
    auto &scalars = x_.bound.where().first.scalars;
    scalars.alpha = {rate, 0}, scalars.beta = {correction1, correction2};
  }
  void submit(context &on, const ops::optimizer &what, sg_operation operation, const char *strategy,
              checked_submit &order, sg_job **out_job) {
    x_.set_operation(what, strategy, what.is_adam ? 12 : 4, command_form::split::rows);
    auto wanted = backend_command<sg_backend_optimizer>();
    wanted.type = d_.dtype;
    bind_layer(x_, wanted.header, strategy);
    submit_layer(on, x_, operation, d_, name_, order, out_job);
  }

 private:
  const Desc &d_;
  const char *name_;
  given_operand vectors_[4];
  layer x_;
};

}  // namespace

void submit(context &on, const sg_sgd_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  require_finite(d.rate, -HUGE_VAL, name, "rate");
  require_number(d.momentum, 0, 1, true, name, "momentum", "from 0 to 1");
  require_finite(d.weight_decay, 0, name, "weight_decay");
  require_range(d.nesterov, 0, 1, (std::string(name) + "->nesterov").c_str());
  if (d.momentum != 0 && !order.place_of_absent())
    require(d.momentum_buffer, (std::string(name) + "->momentum_buffer").c_str());
  checked_step step(on, order, d, name);
  require_in_arithmetic(d.rate, d.dtype, name, "rate");
  require_in_arithmetic(d.weight_decay, d.dtype, name, "weight_decay");
  if (d.momentum_buffer || d.momentum != 0) step.add_state(ops::optimizer::first, "momentum_buffer", d.momentum_buffer);
  ops::optimizer what;
  what.nesterov = d.nesterov != 0;
  what.beta1 = d.momentum, what.weight_decay = d.weight_decay;
  step.set_scalars(d.rate, 1, 1);
  step.submit(on, what, SG_OPERATION_SGD, "sgd", order, out_job);
}

void submit(context &on, const sg_adam_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  require_range(d.step, 1, INT64_MAX, (std::string(name) + "->step").c_str());
  require_finite(d.rate, -HUGE_VAL, name, "rate");
  require_number(d.beta1, 0, 1, false, name, "beta1", "from 0 to below 1");
  require_number(d.beta2, 0, 1, false, name, "beta2", "from 0 to below 1");
  require_finite(d.epsilon, 0, name, "epsilon");
  require_finite(d.weight_decay, 0, name, "weight_decay");
  require_range(d.decoupled, 0, 1, (std::string(name) + "->decoupled").c_str());
  checked_step step(on, order, d, name);
  require_in_arithmetic(d.rate, d.dtype, name, "rate");
  require_in_arithmetic(d.epsilon, d.dtype, name, "epsilon");
  require_in_arithmetic(d.weight_decay, d.dtype, name, "weight_decay");
  if (d.dtype != SG_DTYPE_F64 && d.epsilon > 0 && static_cast<float>(d.epsilon) == 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->epsilon is %g, which is 0 in f32, the type of the arithmetic", name,
                d.epsilon);
  step.add_state(ops::optimizer::first, "first", d.first);
  step.add_state(ops::optimizer::second, "second", d.second);
  ops::optimizer what;
  what.is_adam = true, what.decoupled = d.decoupled != 0;
  what.beta1 = d.beta1, what.beta2 = d.beta2, what.epsilon = d.epsilon, what.weight_decay = d.weight_decay;
  const auto number = static_cast<double>(d.step);
  step.set_scalars(d.rate, 1 - std::pow(d.beta1, number), 1 - std::pow(d.beta2, number));
  step.submit(on, what, SG_OPERATION_ADAM, "adam", order, out_job);
}

}  // namespace sg
