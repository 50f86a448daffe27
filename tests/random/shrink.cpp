// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <functional>

#include "isolate.hpp"

namespace sg_test::random_tests {

namespace {

using change = std::function<void(test_case &)>;

// Changes of one operand, in the order of decreasing effect.
void for_operand(std::vector<change> &all, std::size_t step, operand_case gemm_case::*which) {
  const auto add = [&](auto what) { all.push_back([=](test_case &t) { what(t.steps[step].gemm.*which); }); };
  add([](operand_case &x) { x.where = memory::ordinary; });
  add([](operand_case &x) {
    if (x.where != memory::ordinary) x.where = memory::pinned;
  });
  add([](operand_case &x) { x.device = 0; });
  add([](operand_case &x) { x.items = item_form::strided; });
  add([](operand_case &x) { x.offset = 0; });
  add([](operand_case &x) { x.half_an_element_on = false; });
  add([](operand_case &x) { x.gap = 0; });
  add([](operand_case &x) { x.gap /= 2; });
  add([](operand_case &x) { x.pad = 0; });
  add([](operand_case &x) { x.pad /= 2; });
  add([](operand_case &x) { x.says_ld = false; });
  add([](operand_case &x) { x.at_start = false; });
}

void for_gemm(std::vector<change> &all, std::size_t step) {
  const auto add = [&](auto what) { all.push_back([=](test_case &t) { what(t.steps[step].gemm); }); };
  add([](gemm_case &p) { p.batch = 1; });
  add([](gemm_case &p) {
    if (p.batch > 2) p.batch = 2;
  });
  add([](gemm_case &p) {
    if (p.batch > 2) p.batch /= 2;
  });
  for (std::int64_t gemm_case::*size : {&gemm_case::m, &gemm_case::n, &gemm_case::k}) {
    add([=](gemm_case &p) {
      if (p.*size > 1) p.*size = 1;
    });
    add([=](gemm_case &p) { p.*size = std::max<std::int64_t>(p.*size / 2, std::min<std::int64_t>(p.*size, 1)); });
    add([=](gemm_case &p) {
      if (p.*size > 8) p.*size -= p.*size / 8;
    });
    add([=](gemm_case &p) {
      if (p.*size > 1) --(p.*size);
    });
  }
  add([](gemm_case &p) { p.in = p.out = SG_DTYPE_F32, p.compute = SG_COMPUTE_EXACT; });
  add([](gemm_case &p) {
    if (p.in != SG_DTYPE_F32) p.in = p.out = SG_DTYPE_F64, p.compute = SG_COMPUTE_EXACT;
  });
  add([](gemm_case &p) { p.compute = SG_COMPUTE_EXACT; });
  add([](gemm_case &p) { p.has_bias = false; });
  add([](gemm_case &p) { p.activation = SG_ACTIVATION_NONE; });
  add([](gemm_case &p) { p.alpha = {1, 0}; });
  add([](gemm_case &p) { p.beta = {0, 0}; });
  add([](gemm_case &p) {
    if (!p.beta_zero()) p.beta = {1, 0};
  });
  add([](gemm_case &p) { p.nan_in = 0; });
  add([](gemm_case &p) { p.foreign = 0; });
  add([](gemm_case &p) { p.bias_cancels = false; });
  add([](gemm_case &p) { p.b_is_a = false; });
  add([](gemm_case &p) { p.op_a = SG_TRANSPOSE_N; });
  add([](gemm_case &p) { p.op_b = SG_TRANSPOSE_N; });
  add([](gemm_case &p) { p.data = values::integers; });
  for (operand_case gemm_case::*which : {&gemm_case::a, &gemm_case::b, &gemm_case::c, &gemm_case::bias})
    for_operand(all, step, which);
  add([](gemm_case &p) { p.a.layout = p.b.layout = p.c.layout = SG_LAYOUT_ROW_MAJOR; });
  for (operand_case gemm_case::*which : {&gemm_case::a, &gemm_case::b, &gemm_case::c})
    add([=](gemm_case &p) { (p.*which).layout = SG_LAYOUT_ROW_MAJOR; });
}

void for_copy(std::vector<change> &all, std::size_t step) {
  const auto add = [&](auto what) { all.push_back([=](test_case &t) { what(t.steps[step].copy); }); };
  add([](copy_case &c) { c.height = 1; });
  add([](copy_case &c) { c.height = std::max<std::int64_t>(c.height / 2, 1); });
  add([](copy_case &c) { c.width = std::max<std::int64_t>(c.width / 2, 1); });
  add([](copy_case &c) {
    if (c.width > 1) --c.width;
  });
  add([](copy_case &c) { c.src_gap = 0; });
  add([](copy_case &c) { c.dst_gap = 0; });
  for (operand_case copy_case::*which : {&copy_case::src, &copy_case::dst}) {
    add([=](copy_case &c) { (c.*which).where = memory::ordinary; });
    add([=](copy_case &c) { (c.*which).device = 0; });
    add([=](copy_case &c) { (c.*which).offset = 0; });
    add([=](copy_case &c) { (c.*which).at_start = false; });
  }
}

void for_step(std::vector<change> &all, const test_case &t, std::size_t step) {
  const auto add = [&](auto what) { all.push_back([=](test_case &x) { what(x.steps[step]); }); };
  add([](step_case &s) { s.options = SG_PLAN_OPTIONS_INIT; });
  add([](step_case &s) { s.options.split = SG_SPLIT_AUTO, s.options.parts = 0; });
  add([](step_case &s) { s.options.parts = 0; });
  add([](step_case &s) { s.options.streams = 0; });
  add([](step_case &s) { s.options.memory_limit = 0; });
  add([](step_case &s) { s.options.tile_m = s.options.tile_n = s.options.tile_k = 0; });
  for (std::int64_t sg_plan_options::*tile :
       {&sg_plan_options::tile_m, &sg_plan_options::tile_n, &sg_plan_options::tile_k})
    add([=](step_case &s) { s.options.*tile = 0; });
  add([](step_case &s) { s.options.place_a = s.options.place_b = s.options.place_c = SG_MEMORY_AUTO; });
  add([](step_case &s) { s.call = call_form::async; });
  add([](step_case &s) { s.plan_without_pointers = false; });
  add([](step_case &s) { s.options.devices = 0; });
  add([](step_case &s) { s.options.device_count = std::min(s.options.device_count, 2); });
  add([](step_case &s) { s.stream = -1; });
  add([](step_case &s) { s.priority = 0; });
  add([](step_case &s) { s.after_all = false; });
  if (t.steps[step].is_copy)
    for_copy(all, step);
  else
    for_gemm(all, step);
}

// Later steps refer to earlier ones: a reader of a dropped step gets an A of its own.
void drop(test_case &t, std::size_t step) {
  t.steps.erase(t.steps.begin() + static_cast<std::ptrdiff_t>(step));
  for (step_case &s : t.steps) {
    int &from = s.gemm.a_from;
    if (from == static_cast<int>(step)) from = -1;
    if (from > static_cast<int>(step)) --from;
  }
}

std::vector<change> changes_of(const test_case &t) {
  std::vector<change> all;
  for (std::size_t i = t.steps.size(); t.steps.size() > 1 && i-- > 0;) all.push_back([i](test_case &x) { drop(x, i); });
  all.push_back([](test_case &x) { x.runs = 1; });
  all.push_back([](test_case &x) { x.how = way::jobs; });
  all.push_back([](test_case &x) { x.blocking = x.how == way::jobs; });
  all.push_back([](test_case &x) { x.check_hazards = false; });
  all.push_back([](test_case &x) { x.untracked_run = false; });
  for (std::size_t i = 0; i < t.steps.size(); ++i) {
    all.push_back([i](test_case &x) { x.steps[i].gemm.a_from = -1; });
    for_step(all, t, i);
  }
  return all;
}

bool blas_fits(const step_case &s) {
  const gemm_case &p = s.gemm;
  return (p.in == SG_DTYPE_F32 || p.in == SG_DTYPE_F64) && p.in == p.out && p.batch == 1 && p.plain() &&
         p.a.layout == p.c.layout && p.b.layout == p.c.layout;
}

// Makes a changed test valid again, or returns that it cannot be.
bool settle(test_case &t) {
  t.untracked_run = t.untracked_run && t.how == way::graph;
  for (step_case &s : t.steps) {
    gemm_case &p = s.gemm;
    if (s.is_copy) continue;
    p.bias_cancels = p.bias_cancels && p.has_bias && !p.complex() && p.out != SG_DTYPE_I32;
    if (p.a_from >= 0) {
      const gemm_case &from = t.steps[static_cast<std::size_t>(p.a_from)].gemm;
      if (from.out != p.in) return false;
      p.m = from.m, p.k = from.n, p.batch = from.batch;
      p.op_a = SG_TRANSPOSE_N;
      p.a = from.c;
    }
    if (p.b_is_a) p.n = p.m, p.b = p.a;
    if (p.b_is_a && (p.op_a == SG_TRANSPOSE_N) == (p.op_b == SG_TRANSPOSE_N)) return false;
    if (p.complex() && p.op_a == SG_TRANSPOSE_C && p.a.layout != p.c.layout) return false;
    if (p.complex() && p.op_b == SG_TRANSPOSE_C && p.b.layout != p.c.layout) return false;
    if (s.call == call_form::blas && !blas_fits(s)) s.call = call_form::async;
    if (s.call == call_form::plan && p.nothing_to_do()) return false;
    if (s.options.split == SG_SPLIT_NONE && s.options.parts > 1) return false;
    if (p.complex() && p.activation != SG_ACTIVATION_NONE) return false;
  }
  return true;
}

}  // namespace

test_case shrink(const std::string &device, test_case t, fault &seen, double seconds) {
  using clock = std::chrono::steady_clock;
  const auto until = clock::now() + std::chrono::duration<double>(seconds);
  // An intermittent fault needs several runs.
  const int times = run_isolated(device, t) ? 1 : 30;
  for (bool smaller = true; smaller;) {
    smaller = false;
    // A change that helps is tried again, because it may help again (halves); the list of changes is that of the
    // round's first test.
    for (const change &make : changes_of(t))
      for (;;) {
        if (clock::now() > until) return t;
        test_case next = t;
        make(next);
        if (!settle(next) || next == t) break;
        const auto wrong = run_isolated(device, next, times);
        if (!wrong) break;
        const bool same_steps = next.steps.size() == t.steps.size();
        t = std::move(next);
        seen = *wrong;
        smaller = true;
        if (!same_steps) goto next_round;
      }
  next_round:;
  }
  return t;
}

}  // namespace sg_test::random_tests
