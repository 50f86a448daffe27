// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/symmetric.h>

#include "api/operations/operations.hpp"
#include "api/operations/triangles.hpp"

namespace sg {

namespace {

sg_symmetry checked_symmetry(sg_symmetry symmetry, sg_triangle triangle, sg_dtype type, const char *desc) {
  require_choice(triangle, SG_TRIANGLE_UPPER, desc, "triangle", "triangle");
  require_choice(symmetry, SG_SYMMETRY_HERMITIAN, desc, "symmetry", "symmetry");
  return is_complex(type) ? symmetry : SG_SYMMETRY_SYMMETRIC;
}

void require_layout_of(const given_operand &x, const given_operand &result) {
  if (x.view.layout == result.view.layout) return;
  throw error(SG_STATUS_UNSUPPORTED, "@%s->%s is %s and the Hermitian @%s->%s is %s; give both one layout", x.desc,
              x.name, name_of(x.view.layout), result.desc, result.name, name_of(result.view.layout));
}

void require_real(const sg_scalar &x, const char *desc, const char *field) {
  if (x.im != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.im is %g; of a Hermitian matrix it must be 0", desc, field, x.im);
}

// The common end of both operations.
template <class Desc>
void submit_symmetric(context &on, layer &x, ops::symmetric what, sg_operation operation, const Desc &d,
                      const char *name, checked_submit &order, sg_job **out_job) {
  auto wanted = backend_command<sg_backend_symmetric>();
  wanted.type = d.c.dtype;
  bind_layer(x, wanted.header, x.form.strategy);
  command_form fixed = x.form;  // alpha and beta may change
  what.alpha = what.beta = scalar_role::job, fixed.what = what;
  submit_layer(on, x, operation, d, name, order, out_job, &fixed);
}

}  // namespace

void submit(context &on, const sg_symmetric_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand a = given_matrix(name, "a", d.a), b = given_matrix(name, "b", d.b),
                      c = given_matrix(name, "c", d.c);
  require_choice(d.side, SG_SIDE_RIGHT, name, "side", "side");
  ops::symmetric what;
  what.symmetry = checked_symmetry(d.symmetry, d.triangle, d.c.dtype, name);
  check_view(c);
  check_view(a);
  check_view(b);
  require_blas_type(c);
  require_factor(a, d.side, c);
  require_same_form(b, c);
  if (what.symmetry == SG_SYMMETRY_HERMITIAN) require_layout_of(c, a);
  what.side = side_as_stored(d.side, d.c), what.triangle = triangle_as_stored(d.triangle, d.a);
  layer x(on, order);
  x.allows_in_place = false;
  x.by_rows = d.c.layout == SG_LAYOUT_ROW_MAJOR;
  scalar_pair &scalars = x.bound.where().first.scalars;
  scalars.alpha = checked_scalar(name, "alpha", d.alpha, d.c.dtype);
  scalars.beta = checked_scalar(name, "beta", d.beta, d.c.dtype);
  if (is_zero(scalars.alpha)) what.alpha = scalar_role::zero;
  if (is_zero(scalars.beta)) what.beta = scalar_role::zero;
  x.set_operation(what, "symmetric product", flops_per_mac(d.c.dtype) * double(d.a.rows), split_of(what.side));
  if (!is_zero(scalars.alpha)) {
    add_operand(x, a, ops::symmetric::a, share::whole);
    add_matrix(x, b, ops::symmetric::b);
  }
  x.form.parameters[ops::symmetric::a].accessed = part_of(what.triangle);
  add_operand(x, c, ops::symmetric::c);
  submit_symmetric(on, x, what, SG_OPERATION_SYMMETRIC, d, name, order, out_job);
}

void submit(context &on, const sg_rank_k_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const bool has_b = d.b.data != nullptr || d.b.rows != 0 || d.b.cols != 0;
  const given_operand a = given_matrix(name, "a", d.a), b = given_matrix(name, "b", d.b),
                      c = given_matrix(name, "c", d.c);
  ops::symmetric what;
  what.kind = has_b ? SG_BACKEND_SYMMETRIC_RANK_2K : SG_BACKEND_SYMMETRIC_RANK_K;
  what.symmetry = checked_symmetry(d.symmetry, d.triangle, d.c.dtype, name);
  const bool is_hermitian = what.symmetry == SG_SYMMETRY_HERMITIAN;
  check_view(c);
  check_view(a);
  if (has_b) check_view(b);
  require_blas_type(c);
  require_type_of(a, c);
  require_choice(d.op_a, SG_TRANSPOSE_C, name, "op_a", "op");
  const bool transposes = d.op_a != SG_TRANSPOSE_N;
  if (is_complex(d.c.dtype) && transposes && (d.op_a == SG_TRANSPOSE_C) != is_hermitian)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->op_a is %s; of a complex %s matrix it must be N or %s", name,
                d.op_a == SG_TRANSPOSE_C ? "C" : "T", is_hermitian ? "Hermitian" : "symmetric",
                is_hermitian ? "C" : "T");
  const std::int64_t k = transposes ? d.a.rows : d.a.cols;
  require_extent(c, d.c.rows, d.c.rows, c);
  require_extent(a, transposes ? k : d.c.rows, transposes ? d.c.rows : k, c);
  if (has_b) require_same_form(b, a);
  if (is_hermitian) require_layout_of(a, c);
  if (has_b && b.view.layout != a.view.layout)
    throw error(SG_STATUS_UNSUPPORTED, "@%s->b is %s and @%s->a is %s; give both one layout", name, name_of(d.b.layout),
                name, name_of(d.a.layout));
  const bool by_rows = d.a.layout == SG_LAYOUT_ROW_MAJOR;
  what.triangle = triangle_as_stored(d.triangle, d.c);
  what.op = transposes == by_rows ? SG_TRANSPOSE_N : is_hermitian ? SG_TRANSPOSE_C : SG_TRANSPOSE_T;
  layer x(on, order);
  x.allows_in_place = false;
  scalar_pair &scalars = x.bound.where().first.scalars;
  scalars.alpha = checked_scalar(name, "alpha", d.alpha, d.c.dtype);
  scalars.beta = checked_scalar(name, "beta", d.beta, d.c.dtype);
  if (is_hermitian) require_real(scalars.beta, name, "beta");
  if (is_hermitian && !has_b) require_real(scalars.alpha, name, "alpha");
  // Of a Hermitian C whose transpose is stored the two products change places.
  if (is_hermitian && by_rows) scalars.alpha.im = -scalars.alpha.im;
  const bool multiplies = !is_zero(scalars.alpha) && k > 0;
  if (!multiplies) what.alpha = scalar_role::zero;
  if (is_zero(scalars.beta)) what.beta = scalar_role::zero;
  x.set_operation(what, "symmetric update", flops_per_mac(d.c.dtype) * double(k) * (has_b ? 1 : 0.5),
                  multiplies ? command_form::split::triangle : command_form::split::none);
  if (multiplies) {
    add_operand(x, a, ops::symmetric::a, share::whole);
    if (has_b) add_operand(x, b, ops::symmetric::b, share::whole);
  }
  add_operand(x, c, ops::symmetric::c);
  x.form.parameters[ops::symmetric::c].accessed = part_of(what.triangle);
  submit_symmetric(on, x, what, SG_OPERATION_RANK_K, d, name, order, out_job);
}

}  // namespace sg
