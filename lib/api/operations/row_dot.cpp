// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/row_dot.h>

#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

void submit(context &on, const sg_row_dot_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand a = given_by_rows(name, "a", d.a), b = given_by_rows(name, "b", d.b),
                      y = given_by_rows(name, "y", d.y);
  check_view(a);
  check_view(b);
  check_view(y);
  require_layer_type(a);
  require_same_form(b, a);
  require_column(y, a);
  layer x(on, order);
  x.allows_in_place = false;
  const bool by_rows = x.by_rows = a.view.layout == SG_LAYOUT_ROW_MAJOR;
  x.set_operation(ops::row_dot{by_rows}, "row dot", 2 * double(a.view.cols), command_form::split::columns);
  const share of_rows = by_rows ? share::same : share::transposed;  // a row of Y is a column as stored
  if (a.view.cols > 0) {
    add_matrix(x, a, ops::row_dot::a, of_rows);
    add_matrix(x, b, ops::row_dot::b, of_rows);
  }
  add_operand(x, y, ops::row_dot::y);
  auto wanted = backend_command<sg_backend_row_dot>();
  wanted.type = d.y.dtype;
  bind_layer(x, wanted.header, x.form.strategy);
  submit_layer(on, x, SG_OPERATION_ROW_DOT, d, name, order, out_job);
}

}  // namespace sg
