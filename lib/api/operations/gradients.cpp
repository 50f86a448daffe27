// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/gradients.h>

#include <cmath>

#include "api/operands/operand_bytes.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"
#include "plan/layers/norm_backward.hpp"

namespace sg {

void submit(context &on, const sg_softmax_backward_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand y = given_by_rows(name, "y", d.y), dy = given_by_rows(name, "dy", d.dy),
                      dx = given_by_rows(name, "dx", d.dx);
  check_view(dx);
  check_view(y);
  check_view(dy);
  require_layer_type(dx);
  require_same_form(y, dx);
  require_same_form(dy, dx);
  layer x(on, order);
  x.set_operation(ops::softmax_backward{}, "softmax gradient", 4, command_form::split::columns);
  add_matrix(x, y, ops::softmax_backward::y);
  add_matrix(x, dy, ops::softmax_backward::dy);
  add_matrix(x, dx, ops::softmax_backward::dx);
  auto wanted = backend_command<sg_backend_softmax_backward>();
  wanted.type = wanted.dy_type = d.dx.dtype;
  bind_layer(x, wanted.header, "softmax gradient");
  submit_layer(on, x, SG_OPERATION_SOFTMAX_BACKWARD, d, name, order, out_job);
}

void submit(context &on, const sg_norm_backward_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  using which = norm_backward_form;
  const given_operand dy = given_by_rows(name, "dy", d.dy), x = given_by_rows(name, "x", d.x),
                      dx = given_by_rows(name, "dx", d.dx);
  const given_operand gamma = given_values(name, "gamma", d.gamma, d.x.cols, 1, d.x.dtype);
  const given_operand dgamma = given_values(name, "dgamma", d.dgamma, d.x.cols, 1, d.x.dtype);
  const given_operand dbeta = given_values(name, "dbeta", d.dbeta, d.x.cols, 1, d.x.dtype);
  require_norm(d.kind, d.epsilon, name);
  if (d.dbeta && d.kind == SG_NORM_RMS)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->dbeta is given; an RMS norm has no beta", name);
  check_view(dx);
  check_view(dy);
  check_view(x);
  require_layer_type(dx);
  require_same_form(dy, dx);
  require_same_form(x, dx);
  norm_backward_form form;
  form.kind = d.kind, form.epsilon = d.epsilon;
  form.rows = d.dx.rows, form.columns = d.dx.cols;
  form.operands[which::dx].type = d.dx.dtype;
  operand_set operands(on, order.place_of_absent());
  const bool is_empty = d.dx.cols == 0, has_rows = !is_empty && d.dx.rows > 0;
  const auto add = [&](std::size_t index, const given_operand &given, access_mode mode, bool may_become = false) {
    operand made = stored(given, 1);
    total_bytes(made, 1, given.name);
    operand_set::rules rules;
    rules.mode = mode;
    if (may_become) rules.may_become = which::dx;
    operands.add(index, given, made, rules);
    form.operands[index] = made;
  };
  const auto add_matrix = [&](std::size_t index, const given_operand &given, access_mode mode) {
    add(index, given, mode, index != which::dx);
    form.is_column_major[index] = given.view.layout == SG_LAYOUT_COLUMN_MAJOR;
  };
  if (has_rows) {
    add_matrix(which::dy, dy, access_mode::read);
    add_matrix(which::x, x, access_mode::read);
    if (d.gamma) add(which::gamma, gamma, access_mode::read);
    add_matrix(which::dx, dx, access_mode::write);
  }
  if (!is_empty && d.dgamma) add(which::dgamma, dgamma, access_mode::write);
  if (!is_empty && d.dbeta) add(which::dbeta, dbeta, access_mode::write);
  auto wanted = backend_command<sg_backend_norm_backward>();
  wanted.type = d.dx.dtype;
  wanted.kind = d.kind;
  if (!on.on().supports(wanted.header))
    throw error(SG_STATUS_UNSUPPORTED, "device %.64s has no norm gradient of %s", on.on().name().c_str(),
                name_of(d.dx.dtype));
  submit_operands(on, operands, d, name,
                  {SG_OPERATION_NORM_BACKWARD, form_of<norm_backward_form>(form), operands.operands().empty()},
                  usual_request(order), order, out_job);
}

}  // namespace sg
