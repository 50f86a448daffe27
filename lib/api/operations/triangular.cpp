// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/triangular.h>

#include "api/operations/operations.hpp"
#include "api/operations/triangles.hpp"

namespace sg {

void submit(context &on, const sg_triangular_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand a = given_matrix(name, "a", d.a), b = given_matrix(name, "b", d.b);
  require_choice(d.kind, SG_TRIANGULAR_MULTIPLY, name, "kind", "kind of a triangular operation");
  require_choice(d.side, SG_SIDE_RIGHT, name, "side", "side");
  require_choice(d.triangle, SG_TRIANGLE_UPPER, name, "triangle", "triangle");
  require_choice(d.diagonal, SG_DIAGONAL_UNIT, name, "diagonal", "kind of a diagonal");
  check_view(b);
  check_view(a);
  require_blas_type(b);
  require_factor(a, d.side, b);
  const sg_scalar alpha = checked_scalar(name, "alpha", d.alpha, d.b.dtype);
  ops::triangular what;
  what.kind = d.kind, what.diagonal = d.diagonal;
  what.side = side_as_stored(d.side, d.b), what.triangle = triangle_as_stored(d.triangle, d.a);
  what.op = op_on_stored(a, d.op_a, d.b.layout);
  if (is_zero(alpha)) what.alpha = scalar_role::zero;
  layer x(on, order);
  x.allows_in_place = false;
  x.set_operation(what, d.kind == SG_TRIANGULAR_SOLVE ? "triangular solve" : "triangular product",
                  flops_per_mac(d.b.dtype) / 2 * double(d.a.rows), split_of(what.side));
  if (!is_zero(alpha)) add_operand(x, a, ops::triangular::a, share::whole);
  x.form.parameters[ops::triangular::a].accessed = part_of(what.triangle);
  add_operand(x, b, ops::triangular::b);
  x.bound.where().first.scalars = {alpha, alpha};  // GEMMs of tiles scale B by alpha as their beta
  auto wanted = backend_command<sg_backend_triangular>();
  wanted.type = d.b.dtype;
  bind_layer(x, wanted.header, x.form.strategy);
  command_form fixed = x.form;  // alpha may change
  what.alpha = scalar_role::job, fixed.what = what;
  submit_layer(on, x, SG_OPERATION_TRIANGULAR, d, name, order, out_job, &fixed);
}

}  // namespace sg
