// SPDX-License-Identifier: Apache-2.0
#include "api/gemm/gemm.hpp"

#include <streamgemm/gemm.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "api/entry.hpp"
#include "api/gemm/accesses.hpp"
#include "api/gemm/place_gemm.hpp"
#include "api/gemm/submission_cache.hpp"
#include "api/gemm/submit_gemm.hpp"
#include "api/submission/submission.hpp"
#include "api/wait.hpp"
#include "plan/gemm/gemm_form.hpp"
#include "plan/gemm/resident/latency_parts.hpp"

namespace sg {

namespace {

inline ref<job> gemm_job(context &to, const binding::head &where, const std::shared_ptr<const program> &plan) {
  ref<job> work = to.new_job();
  work->give_work(plan);
  work->operands.first = where;
  return work;
}

}  // namespace

void submit_gemm(context &to, const binding::head &where, const std::shared_ptr<const program> &plan,
                 const access *accesses, std::size_t access_count, checked_submit &order, sg_job **out_job) {
  order.go(gemm_job(to, where, plan), accesses, access_count, out_job);
}

void submit_gemm(context &to, checked_gemm &&gemm, const std::shared_ptr<const program> &plan, checked_submit &order,
                 sg_job **out_job) {
  if (gemm.pointers.empty()) {
    access accesses[4];
    if (const std::size_t count = list_accesses(gemm, accesses); count > 0)
      return submit_gemm(to, gemm.where, plan, accesses, count, order, out_job);
  }
  ref<job> work = gemm_job(to, gemm.where, plan);
  work->operands.pointers = std::move(gemm.pointers);
  access_list accesses;
  accesses.add(gemm);
  order.go(std::move(work), accesses.data(), accesses.size(), out_job);
}

namespace {

// Gives a job the plan of a group, and the operands of each of its GEMMs.
void give_work(job &work, const std::shared_ptr<const program> &plan, binding &&where) {
  work.give_work(plan);
  work.operands = std::move(where);
}

}  // namespace

void submit_gemm(context &on, const sg_gemm_desc &d, const gemm_names &names, const sg_submit *submit, sg_job **out_job,
                 ref<job> *pending) {
  checked_submit order(on, submit);
  if (pending) order.will_wait(pending);
  const bool worth_remembering = order.is_planners_choice();
  const bool latency = worth_remembering && order.will_wait() && on.plans_for_latency();
  if (const cached_gemm *const cached = worth_remembering ? cached_gemm::find(on, d, {.latency = latency}) : nullptr) {
    if (const auto now = cached->rebind(on, d))
      return submit_gemm(on, now->where, cached->program(), now->accesses,
                         static_cast<std::size_t>(cached->operand_count()), order, out_job);
  }
  operand_spaces known;
  const plan_request wanted = order.wanted(known);
  checked_gemm gemm = check_gemm(on.memory(), d, known, true, "desc", names);
  plan_request request = request_for(d, gemm.shape, wanted);
  request.latency = latency && latency_parts(gemm.shape, on.model().compute_lanes) > 1;
  if (order.records()) {
    order.note_request(wanted);
    order.note(SG_OPERATION_GEMM, gemm_form(fixed_in_updates(gemm.shape)), "desc");
  }
  if (gemm.nothing_to_do) return order.go(on.new_job(), nullptr, 0, out_job);
  const auto [plan, is_kept] = place_gemm(on, {&gemm.shape, 1}, request, order);
  if (worth_remembering && is_kept && cached_gemm::keeps(*plan))
    if (cached_gemm *const cache_entry = cached_gemm::entry_for(on, d, {.latency = latency});
        cache_entry && cache_entry->remember(on, d, gemm, {.latency = latency}))
      cache_entry->keep(plan);
  submit_gemm(on, std::move(gemm), plan, order, out_job);
}

namespace {

void submit_one(context &on, const sg_gemm_desc *desc, const sg_submit *submit, sg_job **out_job,
                ref<job> *pending = nullptr) {
  require(desc, "desc");
  if (desc->struct_size == sizeof *desc) return submit_gemm(on, *desc, {}, submit, out_job, pending);
  submit_gemm(on, options_of(desc, "desc"), {}, submit, out_job, pending);
}

}  // namespace

void submit_group(context &on, const sg_gemm_desc *descs, std::int32_t count, const char *descs_name,
                  checked_submit &order, sg_job **out_job) {
  const bool worth_remembering = order.is_planners_choice();
  cached_group made;
  binding where;
  group_accesses accesses;
  if (worth_remembering) {
    if (const auto *cached = cached_group::find(on, descs, static_cast<std::size_t>(count), where, accesses)) {
      accesses.check_disjoint(descs_name);
      ref<job> work = on.new_job();
      give_work(*work, cached->program(), std::move(where));
      return order.go(work, accesses.list().data(), accesses.list().size(), out_job);
    }
    where.clear();
  }
  operand_spaces known;
  const plan_request wanted = order.wanted(known);
  plan_request request = wanted;
  std::vector<problem> shapes, fixed;
  // The stride of the array is the size of the program's version of the struct.
  const auto *at = reinterpret_cast<const char *>(descs);
  const std::size_t stride = descs->struct_size;
  char name[32] = "";  // of each; formatted without snprintf, which is slow
  char *const number = std::copy_n(descs_name, std::strlen(descs_name), name) + 1;
  number[-1] = '[';
  for (std::int32_t i = 0; i < count; ++i, at += stride) {
    *std::to_chars(number, name + sizeof name - 2, i).ptr = ']';
    const auto *given = reinterpret_cast<const sg_gemm_desc *>(at);
    if (given->struct_size != stride)
      throw error(SG_STATUS_INVALID_ARGUMENT, "@%s.struct_size is %zu and @%s[0].struct_size is %zu", name,
                  given->struct_size, descs_name, stride);
    const sg_gemm_desc d = options_of(given, name);
    checked_gemm gemm = check_gemm(on.memory(), d, known, !order.makes_plan(), name);
    if (i == 0) {
      request = request_for(d, gemm.shape, wanted);
      // In terms of the caller's C, into which that of a plan is turned back.
      if (order.records()) order.note_request(order.plan_to_run() ? request : wanted);
    }
    if (order.records()) fixed.push_back(fixed_in_updates(gemm.shape));
    if (worth_remembering) made.add(on, d, gemm);
    if (gemm.nothing_to_do) continue;
    if (!order.makes_plan()) accesses.add(gemm, static_cast<std::size_t>(i));
    if (shapes.empty())
      where.first = gemm.where;
    else
      where.add_group(gemm.where);
    shapes.push_back(gemm.shape);
    for (auto &list : gemm.pointers) where.pointers.push_back(std::move(list));
  }
  if (order.records()) order.note(SG_OPERATION_GEMM, gemm_form(std::span<const problem>(fixed)), descs_name);
  accesses.check_disjoint(descs_name);
  ref<job> work = on.new_job();
  if (!shapes.empty()) {
    const auto [plan, is_kept] = place_gemm(on, shapes, request, order);
    give_work(*work, plan, std::move(where));
    if (worth_remembering && is_kept) cached_group::remember(std::move(made), plan);
  }
  order.go(work, accesses.list().data(), accesses.list().size(), out_job);
}

void update_gemm(context &on, const sg_operation_desc &given, const submission &was, std::int32_t index,
                 const char *name, checked_submit &order) {
  const std::size_t recorded = was.fixed->gemms().problems;
  if (given.count < 1 || static_cast<std::size_t>(given.count) != recorded)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@operation->count is %d; submission %d of the graph has %zu GEMMs",
                given.count, index, recorded);
  const auto *const gemms = static_cast<const sg_gemm_desc *>(given.desc);
  require(gemms, name);
  if (recorded > 1) return submit_group(on, gemms, given.count, name, order, nullptr);
  const sg_gemm_desc d = options_of(gemms, name);
  checked_gemm gemm = check_gemm(on.memory(), d, {}, true, name);
  order.note(SG_OPERATION_GEMM, gemm_form(fixed_in_updates(gemm.shape)), name);
  if (gemm.nothing_to_do) return order.go(on.new_job(), nullptr, 0, nullptr);
  const auto plan = place_gemm(on, {&gemm.shape, 1}, request_for(d, gemm.shape, was.request), order).plan;
  submit_gemm(on, std::move(gemm), plan, order, nullptr);
}

namespace {

template <class Scalar>
sg_gemm_desc blas_desc(sg_layout layout, sg_transpose op_a, sg_transpose op_b, std::int64_t m, std::int64_t n,
                       std::int64_t k, Scalar alpha, const Scalar *a, std::int64_t lda, const Scalar *b,
                       std::int64_t ldb, Scalar beta, Scalar *c, std::int64_t ldc, sg_dtype type) {
  require_range(op_a, SG_TRANSPOSE_N, SG_TRANSPOSE_C, "op_a");
  require_range(op_b, SG_TRANSPOSE_N, SG_TRANSPOSE_C, "op_b");
  require_range(layout, SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR, "layout");
  require_range(m, 0, INT64_MAX, "m");
  require_range(n, 0, INT64_MAX, "n");
  require_range(k, 0, INT64_MAX, "k");
  const bool by_rows = layout == SG_LAYOUT_ROW_MAJOR;
  const auto least = [by_rows](std::int64_t rows, std::int64_t cols) {
    return std::max<std::int64_t>(1, by_rows ? cols : rows);
  };
  const std::int64_t a_rows = op_a == SG_TRANSPOSE_N ? m : k, a_cols = op_a == SG_TRANSPOSE_N ? k : m;
  const std::int64_t b_rows = op_b == SG_TRANSPOSE_N ? k : n, b_cols = op_b == SG_TRANSPOSE_N ? n : k;
  require_range(lda, least(a_rows, a_cols), INT64_MAX, "lda");
  require_range(ldb, least(b_rows, b_cols), INT64_MAX, "ldb");
  require_range(ldc, least(m, n), INT64_MAX, "ldc");
  const bool touched = m > 0 && n > 0;
  if (touched && k > 0 && alpha != 0) {
    require(a, "a");
    require(b, "b");
  }
  if (touched) require(c, "c");
  sg_gemm_desc d = SG_GEMM_DESC_INIT;
  d.a = {const_cast<Scalar *>(a), a_rows, a_cols, lda, type, layout};
  d.b = {const_cast<Scalar *>(b), b_rows, b_cols, ldb, type, layout};
  d.c = {c, m, n, ldc, type, layout};
  d.op_a = op_a;
  d.op_b = op_b;
  d.alpha = {double(alpha), 0};
  d.beta = {double(beta), 0};
  return d;
}

}  // namespace
}  // namespace sg

using sg::borrowed;
using sg::context;
using sg::guarded;
using sg::job;
using sg::object_type;
using sg::ref;

sg_status sg_gemm_async(sg_context *handle, const sg_gemm_desc *desc, const sg_submit *submit, sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded(
      [&] { sg::submit_one(*borrowed<context>(handle, object_type::context, "context"), desc, submit, out_job); });
}

sg_status sg_gemm(sg_context *handle, const sg_gemm_desc *desc, const sg_submit *submit) {
  return sg::submit_and_wait_here([&](ref<job> *pending) {
    sg::submit_one(*borrowed<context>(handle, object_type::context, "context"), desc, submit, nullptr, pending);
  });
}

sg_status sg_gemm_grouped_async(sg_context *handle, const sg_gemm_desc *descs, int32_t count, const sg_submit *submit,
                                sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const borrowed<context> on(handle, object_type::context, "context");
    sg::require_range(count, 1, 1 << 20, "count");
    sg::require(descs, "descs");
    sg::checked_submit order(*on, submit);
    sg::submit_group(*on, descs, count, "descs", order, out_job);
  });
}

sg_status sg_sgemm_async(sg_context *handle, sg_layout layout, sg_transpose op_a, sg_transpose op_b, int64_t m,
                         int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                         float beta, float *c, int64_t ldc, const sg_submit *submit, sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const borrowed<context> on(handle, object_type::context, "context");
    const sg_gemm_desc desc =
        sg::blas_desc(layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, SG_DTYPE_F32);
    sg::submit_one(*on, &desc, submit, out_job);
  });
}

sg_status sg_dgemm_async(sg_context *handle, sg_layout layout, sg_transpose op_a, sg_transpose op_b, int64_t m,
                         int64_t n, int64_t k, double alpha, const double *a, int64_t lda, const double *b, int64_t ldb,
                         double beta, double *c, int64_t ldc, const sg_submit *submit, sg_job **out_job) {
  if (out_job) *out_job = nullptr;
  return guarded([&] {
    const borrowed<context> on(handle, object_type::context, "context");
    const sg_gemm_desc desc =
        sg::blas_desc(layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, SG_DTYPE_F64);
    sg::submit_one(*on, &desc, submit, out_job);
  });
}

sg_status sg_gemm_grouped(sg_context *context, const sg_gemm_desc *descs, int32_t count, const sg_submit *submit) {
  return sg::submit_and_wait(
      [&](sg_job **out_job) { return sg_gemm_grouped_async(context, descs, count, submit, out_job); });
}

sg_status sg_sgemm(sg_context *context, sg_layout layout, sg_transpose op_a, sg_transpose op_b, int64_t m, int64_t n,
                   int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                   float *c, int64_t ldc, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) {
    return sg_sgemm_async(context, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, submit, out_job);
  });
}

sg_status sg_dgemm(sg_context *context, sg_layout layout, sg_transpose op_a, sg_transpose op_b, int64_t m, int64_t n,
                   int64_t k, double alpha, const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
                   double *c, int64_t ldc, const sg_submit *submit) {
  return sg::submit_and_wait([&](sg_job **out_job) {
    return sg_dgemm_async(context, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, submit, out_job);
  });
}
