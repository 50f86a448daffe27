// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/axpby.h>

#include <memory>
#include <utility>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "api/operands/given_operand.hpp"
#include "api/operands/operand_bytes.hpp"
#include "api/submission/layer.hpp"
#include "api/submission/submission.hpp"
#include "api/wait.hpp"
#include "ops/backend_commands.hpp"

namespace sg {

namespace {

using long_long = long long;

// A checked scale-and-add: its operands as stored, and their addresses as a problem's binding.
struct checked_axpby {
  operand a, c;
  problem_binding where;
  sg_activation activation = SG_ACTIVATION_NONE;
  bool reads_a = true, reads_c = true;
};

void require_on_device(const context &on, const given_operand &x, const operand &o, const operand_address &where) {
  const memory_space space = space_of(on.memory(), x, o, 1, where, SG_MEMORY_AUTO, true);
  if (space != SG_MEMORY_DEVICE)
    throw error(SG_STATUS_UNSUPPORTED, "%s->%s is in %s memory; device %.64s needs it in device memory", x.desc, x.name,
                space == SG_MEMORY_PEER ? "peer" : "host", on.on().name().c_str());
}

checked_axpby check_axpby(const context &on, const sg_axpby_desc &d, const char *name) {
  const given_operand a{name, "a", by_rows_if_both(d.a), nullptr, 0}, c{name, "c", by_rows_if_both(d.c), nullptr, 0};
  check_view(c);
  check_view(a);
  if (d.reserved != 0) throw error(SG_STATUS_INVALID_ARGUMENT, "%s->reserved is %u; it must be 0", name, d.reserved);
  if (d.activation < SG_ACTIVATION_NONE || d.activation > SG_ACTIVATION_GELU)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->activation is %d, which is no activation", name, int{d.activation});
  const sg_dtype type = d.c.dtype;
  if (type == SG_DTYPE_I8 || type == SG_DTYPE_F8_E4M3 || type == SG_DTYPE_F8_E5M2)
    throw error(SG_STATUS_UNSUPPORTED, "%s->c.dtype is %s; it must be f64, f32, f16, bf16, c64, c128 or i32", name,
                name_of(type));
  const bool has_gelu = !is_complex(type) && type != SG_DTYPE_I32;
  if ((d.activation != SG_ACTIVATION_NONE && is_complex(type)) || (d.activation == SG_ACTIVATION_GELU && !has_gelu))
    throw error(SG_STATUS_UNSUPPORTED, "%s->activation is %s, which %s results do not have", name,
                d.activation == SG_ACTIVATION_RELU ? "relu" : "gelu", name_of(type));
  if (d.a.rows != d.c.rows || d.a.cols != d.c.cols)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->a is %lld x %lld and %s->c is %lld x %lld; they must be equal", name,
                long_long{d.a.rows}, long_long{d.a.cols}, name, long_long{d.c.rows}, long_long{d.c.cols});
  if (d.a.dtype != type)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%s->a.dtype is %s and %s->c.dtype is %s; they must be equal", name,
                name_of(d.a.dtype), name, name_of(type));
  if (a.view.layout != c.view.layout)
    throw error(SG_STATUS_UNSUPPORTED, "%s->a.layout is %d and %s->c.layout is %d; they must be equal", name,
                int{a.view.layout}, name, int{c.view.layout});
  checked_axpby x;
  x.where.alpha = checked_scalar(name, "alpha", d.alpha, type);
  x.where.beta = checked_scalar(name, "beta", d.beta, type);
  x.activation = d.activation;
  x.reads_a = !is_zero(x.where.alpha);
  x.reads_c = !is_zero(x.where.beta);
  x.a = stored(a, 1);
  x.c = stored(c, 1);
  x.a.space = x.c.space = SG_MEMORY_DEVICE;
  total_bytes(x.a, 1, "the size of A");
  total_bytes(x.c, 1, "the size of C");
  if (d.c.rows == 0 || d.c.cols == 0) return x;
  auto command = backend_command<sg_backend_axpby>();
  command.m = x.c.rows, command.n = x.c.cols, command.type = type, command.activation = x.activation;
  command.alpha = x.where.alpha, command.beta = x.where.beta;
  command.a = x.reads_a ? &command : nullptr, command.c = &command;
  command.lda = x.a.ld, command.ldc = x.c.ld;
  if (!on.on().supports(command.header))
    throw error(SG_STATUS_UNSUPPORTED, "device %.64s has no scale-and-add of %s", on.on().name().c_str(),
                name_of(type));
  std::vector<std::vector<char *>> unused;
  bind_operand(c, x.c, 1, true, x.where.operands[ops::axpby::c], unused);
  require_on_device(on, c, x.c, x.where.operands[ops::axpby::c]);
  if (!x.reads_a) return x;
  bind_operand(a, x.a, 1, true, x.where.operands[ops::axpby::a], unused);
  require_on_device(on, a, x.a, x.where.operands[ops::axpby::a]);
  return x;
}

command_form command_form_of(const checked_axpby &x) {
  command_form f;
  ops::axpby what;
  what.alpha = x.reads_a ? scalar_role::job : scalar_role::zero;
  what.beta = x.reads_c ? scalar_role::job : scalar_role::zero;
  what.activation = x.activation;
  f.what = what, f.strategy = "scale-and-add", f.splits = command_form::split::none;
  f.parameters[what.c] = {true, share::same, x.c, total_bytes(x.c, 1, "an operand")};
  if (x.reads_a) f.parameters[what.a] = {true, share::same, x.a, total_bytes(x.a, 1, "an operand")};
  return f;
}

}  // namespace

void submit_axpby(context &on, const sg_axpby_desc &desc, const char *name, checked_submit &order, sg_job **out_job) {
  const checked_axpby x = check_axpby(on, desc, name);
  if (order.records()) {
    checked_axpby fixed = x;  // alpha and beta may change
    fixed.reads_a = fixed.reads_c = true;
    order.note(SG_OPERATION_AXPBY, form_of<command_form>(command_form_of(fixed)), name);
  }
  const bool is_empty = !x.where.operands[ops::axpby::c].base;
  const auto plan = is_empty ? nullptr : program_for(on, form_of<command_form>(command_form_of(x)), order);
  ref<job> work = on.new_job();
  if (!plan) return order.go(work, nullptr, 0, out_job);
  access accesses[2] = {{footprint_of(x.c, x.where.operands[ops::axpby::c]), true, x.reads_c}};
  std::size_t count = 1;
  if (x.reads_a) {
    accesses[count++] = {footprint_of(x.a, x.where.operands[ops::axpby::a]), false, true};
    if (overlap(accesses[0].bytes, accesses[1].bytes))
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s->a (%p) and %s->c (%p) overlap", name, desc.a.data, name,
                  desc.c.data);
  }
  work->give_schedule(plan);
  work->operands.first = x.where;
  order.go(std::move(work), accesses, count, out_job);
}

}  // namespace sg

sg_status sg_axpby_async(sg_context *context, const sg_axpby_desc *desc, const sg_submit *submit, sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return sg::guarded([&] {
    const auto on = sg::context_of(context);
    sg::require(desc, "desc");
    const sg_axpby_desc given = sg::options_of(desc, SG_AXPBY_DESC_INIT, "desc");
    sg::checked_submit order(*on, submit);
    sg::submit_axpby(*on, given, "desc", order, out_job);
  });
}

sg_status sg_axpby(sg_context *context, const sg_axpby_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) { return sg_axpby_async(context, desc, submit, out_job); });
}
