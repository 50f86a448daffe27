// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/clamp.h>

#include <cmath>

#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

namespace {

void require_limit(double limit, const char *field, const char *name) {
  if (std::isnan(limit)) throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is NaN; it must be a number", name, field);
}

// The values of a clamp of X, or with `dy` the gradient.
template <class Desc>
void submit_clamp(context &on, const Desc &d, const given_operand &x, const given_operand *dy,
                  const given_operand &result, sg_operation operation, const char *name, checked_submit &order,
                  sg_job **out_job) {
  require_limit(d.low, "low", name);
  require_limit(d.high, "high", name);
  check_view(result);
  check_view(x);
  if (dy) check_view(*dy);
  require_layer_type(result);
  require_same_form(x, result);
  if (dy) require_same_form(*dy, result);
  layer made(on, order);
  made.by_rows = result.view.layout == SG_LAYOUT_ROW_MAJOR;
  made.set_operation(ops::clamp{}, dy ? "clamp gradient" : "clamp", 1, command_form::split::either);
  made.bound.where().first.scalars.alpha = {d.low, d.high};
  add_matrix(made, x, ops::clamp::x);
  if (dy) add_matrix(made, *dy, ops::clamp::dy);
  add_matrix(made, result, ops::clamp::y);
  auto wanted = backend_command<sg_backend_clamp>();
  wanted.type = result.view.dtype;
  bind_layer(made, wanted.header, made.form.strategy);
  submit_layer(on, made, operation, d, name, order, out_job);
}

}  // namespace

void submit(context &on, const sg_clamp_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand x = given_by_rows(name, "x", d.x), y = given_by_rows(name, "y", d.y);
  submit_clamp(on, d, x, nullptr, y, SG_OPERATION_CLAMP, name, order, out_job);
}

void submit(context &on, const sg_clamp_backward_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand dy = given_by_rows(name, "dy", d.dy), x = given_by_rows(name, "x", d.x),
                      dx = given_by_rows(name, "dx", d.dx);
  submit_clamp(on, d, x, &dy, dx, SG_OPERATION_CLAMP_BACKWARD, name, order, out_job);
}

}  // namespace sg
