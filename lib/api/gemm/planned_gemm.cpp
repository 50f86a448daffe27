// SPDX-License-Identifier: Apache-2.0
#include "api/gemm/planned_gemm.hpp"

#include "api/entry.hpp"
#include "api/gemm/place_gemm.hpp"
#include "api/gemm/problem_of.hpp"
#include "api/gemm/submission_cache.hpp"
#include "api/gemm/submit_gemm.hpp"
#include "plan/gemm/gemm_form.hpp"

namespace sg {

namespace {

constexpr const char *desc_name = "operation->desc";

sg_gemm_desc desc_of(const sg_operation_desc &given) {
  if (given.count != 1) throw error(SG_STATUS_INVALID_ARGUMENT, "@operation->count is %d; the plan has 1", given.count);
  require(given.desc, desc_name);
  return options_of(static_cast<const sg_gemm_desc *>(given.desc), desc_name);
}

operand_spaces spaces_of(const problem &p, bool by_rows) {
  return by_rows ? operand_spaces{p.b.space.kind(), p.a.space.kind(), p.c.space.kind(), p.bias.space.kind()}
                 : operand_spaces{p.a.space.kind(), p.b.space.kind(), p.c.space.kind(), p.bias.space.kind()};
}

void copy_spaces(const problem &from, problem &to) {
  to.a.space = from.a.space;
  to.b.space = from.b.space;
  to.c.space = from.c.space;
  to.bias.space = from.bias.space;
}

// Names the first difference between a plan's problem and the submitted one.
void require_as_planned(const problem &planned, const problem &given) {
  if (planned == given) return;
  const char *what = "batch, compute or pointer arrays";
  if (planned.m != given.m || planned.n != given.n || planned.k != given.k)
    what = "sizes";
  else if (planned.op_a != given.op_a || planned.op_b != given.op_b)
    what = "ops or layouts";
  else if (planned.no_multiply != given.no_multiply)
    what = "alpha (0 or not)";
  else if (planned.beta_zero != given.beta_zero)
    what = "beta (0 or not)";
  else if (planned.a.type != given.a.type || planned.c.type != given.c.type)
    what = "types";
  else if (planned.a.ld != given.a.ld || planned.b.ld != given.b.ld || planned.c.ld != given.c.ld)
    what = "leading dimensions";
  else if (planned.bias.rows != given.bias.rows || planned.bias.cols != given.bias.cols ||
           planned.activation != given.activation)
    what = "bias or activation";
  else if (planned.a.space != given.a.space || planned.b.space != given.b.space || planned.c.space != given.c.space ||
           planned.bias.space != given.bias.space)
    what = "memory of the operands";
  throw error(SG_STATUS_INVALID_ARGUMENT, "@operation->desc differs from the plan in its %s", what);
}

}  // namespace

std::shared_ptr<const program> plan_one_gemm(context &on, const sg_operation_desc &given,
                                             const sg_plan_options *options, std::optional<problem> &shape) {
  const sg_gemm_desc d = desc_of(given);
  operand_spaces known;
  const plan_request wanted = check_plan_options(options, "options", known);
  const checked_gemm gemm = check_gemm(on.memory(), d, known, false, desc_name);
  if (gemm.nothing_to_do)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s leaves nothing to do (%lld x %lld x %lld), so it has no plan",
                desc_name, static_cast<long long>(d.c.rows), static_cast<long long>(d.c.cols),
                static_cast<long long>(gemm.shape.k));
  shape = gemm.shape;
  return plan_gemm(on, gemm.shape, request_for(d, gemm.shape, wanted));
}

void run_planned_gemm(context &on, const sg_operation_desc &given, const problem &planned,
                      const std::shared_ptr<const program> &plan, checked_submit &order, sg_job **out_job) {
  const sg_gemm_desc d = desc_of(given);
  const chosen_by by{.plan = order.number_of_plan()};
  const bool worth_remembering = !order.records();
  if (const cached_gemm *const cached = worth_remembering ? cached_gemm::find(on, d, by) : nullptr) {
    if (const auto now = cached->rebind(on, d))
      return submit_gemm(on, now->where, plan, now->accesses, static_cast<std::size_t>(cached->operand_count()), order,
                         out_job);
  }
  checked_gemm gemm =
      check_gemm(on.memory(), d, spaces_of(planned, d.c.layout == SG_LAYOUT_ROW_MAJOR), true, desc_name);
  // Untouched operands have no memory space.
  if (gemm.nothing_to_do) copy_spaces(planned, gemm.shape);
  require_as_planned(planned, gemm.shape);
  if (worth_remembering && !gemm.nothing_to_do)
    if (cached_gemm *const entry = cached_gemm::entry_for(on, d, by); entry && entry->remember(on, d, gemm, by))
      entry->keep(nullptr);  // otherwise the entry is still another GEMM's
  gemm.shape = seen_by(on, *plan, gemm.shape);
  if (order.records()) {
    order.note_request(request_for(d, gemm.shape, plan->request));  // in terms of the caller's C
    order.note(SG_OPERATION_GEMM, gemm_form(fixed_in_updates(gemm.shape)), desc_name);
  }
  if (gemm.nothing_to_do) {
    order.run_nothing();
    return order.go(on.new_job(), nullptr, 0, out_job);
  }
  submit_gemm(on, std::move(gemm), plan, order, out_job);
}

}  // namespace sg
