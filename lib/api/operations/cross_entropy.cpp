// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/cross_entropy.h>

#include <cmath>

#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

void submit(context &on, const sg_cross_entropy_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand scores = given_by_rows(name, "x", d.x), out = given_by_rows(name, "y", d.y);
  const given_operand indices = given_indices(name, d.indices, d.index_type, d.x.rows);
  check_view(scores);
  check_view(out);
  require_layer_type(scores);
  require_some_columns(scores);
  require_column(out, scores);
  layer x(on, order);
  x.allows_in_place = false;
  x.set_operation(ops::cross_entropy{}, "cross entropy", 5 * double(d.x.cols), command_form::split::columns);
  add_matrix(x, scores, ops::cross_entropy::x);
  add_indices(x, indices, ops::cross_entropy::indices);
  add_operand(x, out, ops::cross_entropy::result);
  auto wanted = backend_command<sg_backend_cross_entropy>();
  wanted.type = d.x.dtype;
  bind_layer(x, wanted.header, "cross entropy");
  submit_layer(on, x, SG_OPERATION_CROSS_ENTROPY, d, name, order, out_job);
}

void submit(context &on, const sg_cross_entropy_backward_desc &d, const char *name, checked_submit &order,
            sg_job **out_job) {
  const given_operand scores = given_by_rows(name, "x", d.x), out = given_by_rows(name, "dx", d.dx);
  const given_operand gradient = given_by_rows(name, "dy", d.dy);
  const given_operand indices = given_indices(name, d.indices, d.index_type, d.x.rows);
  if (!std::isfinite(d.scale))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->scale is %g; it must be finite", name, d.scale);
  check_view(out);
  check_view(scores);
  require_layer_type(out);
  require_in_arithmetic(d.scale, d.x.dtype, name, "scale");
  require_same_form(scores, out);
  const bool has_gradient = d.dy.data != nullptr;
  if (has_gradient) {
    check_view(gradient);
    require_column(gradient, scores);
  }
  layer x(on, order);
  x.set_operation(ops::cross_entropy{true, d.scale}, "cross entropy gradient", 6, command_form::split::columns);
  add_matrix(x, scores, ops::cross_entropy::x);
  add_indices(x, indices, ops::cross_entropy::indices);
  if (has_gradient) {
    add_operand(x, gradient, ops::cross_entropy::dy);
    x.operands[ops::cross_entropy::dy].separate = true;
  }
  add_matrix(x, out, ops::cross_entropy::result);
  auto wanted = backend_command<sg_backend_cross_entropy>();
  wanted.type = d.x.dtype;
  bind_layer(x, wanted.header, "cross entropy gradient");
  submit_layer(on, x, SG_OPERATION_CROSS_ENTROPY_BACKWARD, d, name, order, out_job);
}

}  // namespace sg
