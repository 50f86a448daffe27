// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/axpby.h>

#include "api/entry.hpp"
#include "api/operands/given_operand.hpp"
#include "api/operands/operand_bytes.hpp"
#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"
#include "ops/backend_commands.hpp"
#include "plan/form/command_form.hpp"

namespace sg {

namespace {

using long_long = long long;

void check_axpby(const given_operand &a, const given_operand &c, const sg_axpby_desc &d, const char *name) {
  check_view(c);
  check_view(a);
  if (d.activation < SG_ACTIVATION_NONE || d.activation > SG_ACTIVATION_GELU)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->activation is %d, which is no activation", name, int{d.activation});
  const sg_dtype type = d.c.dtype;
  if (type == SG_DTYPE_I8 || type == SG_DTYPE_F8_E4M3 || type == SG_DTYPE_F8_E5M2)
    throw error(SG_STATUS_UNSUPPORTED, "@%s->c.dtype is %s; it must be f64, f32, f16, bf16, c64, c128 or i32", name,
                name_of(type));
  const bool has_gelu = !is_complex(type) && type != SG_DTYPE_I32;
  if ((d.activation != SG_ACTIVATION_NONE && is_complex(type)) || (d.activation == SG_ACTIVATION_GELU && !has_gelu))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->activation is %s, which %s results do not have", name,
                d.activation == SG_ACTIVATION_RELU ? "relu" : "gelu", name_of(type));
  if (d.a.rows != d.c.rows || d.a.cols != d.c.cols)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->a is %lld x %lld and @%s->c is %lld x %lld; they must be equal", name,
                long_long{d.a.rows}, long_long{d.a.cols}, name, long_long{d.c.rows}, long_long{d.c.cols});
  if (d.a.dtype != type)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->a.dtype is %s and @%s->c.dtype is %s; they must be equal", name,
                name_of(d.a.dtype), name, name_of(type));
  if (a.view.layout != c.view.layout && !is_layer_dtype(type))
    throw error(SG_STATUS_UNSUPPORTED, "@%s->a.layout is %d and @%s->c.layout is %d; of %s they must be equal", name,
                int{a.view.layout}, name, int{c.view.layout}, name_of(type));
}

command_form command_form_of(const operand &a, const operand &c, sg_activation activation, bool transposes_a,
                             bool reads_a, bool reads_c) {
  command_form f;
  ops::axpby what;
  what.alpha = reads_a ? scalar_role::job : scalar_role::zero;
  what.beta = reads_c ? scalar_role::job : scalar_role::zero;
  what.activation = activation;
  f.what = what, f.strategy = "scale-and-add", f.splits = command_form::split::none;
  f.parameters[what.c] = {true, share::same, c};
  if (reads_a) f.parameters[what.a] = {true, share::same, a, transposes_a};
  return f;
}

}  // namespace

void submit(context &on, const sg_axpby_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand a = given_by_rows(name, "a", d.a), c = given_by_rows(name, "c", d.c);
  check_axpby(a, c, d, name);
  operand_set operands(on, order.place_of_absent());
  scalar_pair &scalars = operands.where().first.scalars;
  scalars.alpha = checked_scalar(name, "alpha", d.alpha, d.c.dtype);
  scalars.beta = checked_scalar(name, "beta", d.beta, d.c.dtype);
  const bool reads_a = !is_zero(scalars.alpha), reads_c = !is_zero(scalars.beta);
  const bool transposes_a = a.view.layout != c.view.layout;
  operand stored_a = stored(a, 1), stored_c = stored(c, 1);
  total_bytes(stored_a, 1, "the size of A"), total_bytes(stored_c, 1, "the size of C");
  if (exists(stored_c)) {
    auto wanted = backend_command<sg_backend_axpby>();
    wanted.m = stored_c.rows, wanted.n = stored_c.cols, wanted.type = d.c.dtype, wanted.activation = d.activation;
    wanted.alpha = scalars.alpha, wanted.beta = scalars.beta;
    wanted.a = reads_a ? &wanted : nullptr, wanted.c = &wanted;
    wanted.lda = transposes_a ? stored_a.cols : stored_a.ld, wanted.ldc = stored_c.ld;
    if (!on.on().supports(wanted.header))
      throw error(SG_STATUS_UNSUPPORTED, "device %.64s has no scale-and-add of %s", on.on().name().c_str(),
                  name_of(d.c.dtype));
    operand_set::rules rules;
    if (reads_a) operands.add(ops::axpby::a, a, stored_a, rules);
    rules.mode = reads_c ? access_mode::read_write : access_mode::write;
    operands.add(ops::axpby::c, c, stored_c, rules);
  }
  const form_of<command_form> what(command_form_of(stored_a, stored_c, d.activation, transposes_a, reads_a, reads_c)),
      fixed(command_form_of(stored_a, stored_c, d.activation, transposes_a, true, true));  // alpha and beta may change
  submit_operands(on, operands, d, name, {SG_OPERATION_AXPBY, what, !exists(stored_c), &fixed}, usual_request(order),
                  order, out_job);
}

}  // namespace sg
