// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <stdexcept>

#include "data.hpp"
#include "placed.hpp"
#include "support/gemm_plan.h"
#include "support/owned.hpp"

namespace sg_test::random_tests {

namespace {

// A call refused the step, as the documentation allows: the test stops.
struct refusal {
  std::string why;
};

class running {
 public:
  running(bench &on, const test_case &t) : on_(on), t_(t) {}

  std::optional<fault> everything() {
    on_.memory->reset();
    for (std::size_t i = 0; i < t_.steps.size(); ++i) place(i);
    on_.memory->upload();
    for (int round = 0; round < t_.runs; ++round) {
      remember();
      if (auto wrong = submit_all(round)) return wrong;
      on_.memory->download();
      if (auto wrong = check_all()) return wrong;
    }
    return {};
  }

  // The last element of the last GEMM whose result does not depend on how inexact others were, with the bound in which
  // it is right whatever the order of additions is.
  fault sample() const {
    fault last;
    for (const auto &[i, p] : gemms_) {
      const step_case &s = t_.steps[i];
      if (s.gemm.nothing_to_do()) continue;
      fault f = p->last_element(s.options.parts);
      const bool is_finite = std::isfinite(f.wanted.real()) && std::isfinite(f.wanted.imag()) && std::isfinite(f.bound);
      const bool is_real_nan = !s.gemm.complex() && std::isnan(f.wanted.real());
      const bool is_exact = is_real_nan || (is_finite && f.bound == 0);
      if (s.gemm.a_from >= 0 || !(is_exact || (is_finite && t_.runs == 1))) continue;
      f.step = static_cast<int>(i);
      last = f;
    }
    return last;
  }

 private:
  void place(std::size_t i) {
    const step_case &s = t_.steps[i];
    if (s.is_copy) {
      copies_[i] = std::make_unique<placed_copy>(*on_.memory, s.copy);
      return;
    }
    const int from = s.gemm.a_from;
    gemms_[i] = std::make_unique<placed_gemm>(*on_.memory, s.gemm,
                                              from >= 0 ? &gemms_.at(static_cast<std::size_t>(from))->c : nullptr);
  }

  void remember() {
    for (auto &[i, p] : gemms_) p->remember();
    for (auto &[i, c] : copies_) c->remember();
  }

  sg_submit submit_of(std::size_t step, const sg_plan_options *options) {
    const step_case &s = t_.steps[step];
    sg_submit submit = SG_SUBMIT_INIT;
    submit.plan = options;
    submit.priority = s.priority;
    if (t_.blocking && !s.is_copy) submit.flags |= SG_SUBMIT_WILL_WAIT;
    if (s.stream >= 0 && static_cast<std::size_t>(s.stream) < on_.streams.size())
      submit.stream = on_.streams[static_cast<std::size_t>(s.stream)];  // NULL where there is none of few units
    if (t_.is_untracked(step) && !jobs_.empty()) {
      submit.flags |= SG_SUBMIT_UNTRACKED;
      after_.clear();
      if (!submit.stream || !t_.is_ordered_by_stream(step))
        for (const job &j : jobs_) after_.push_back(j);
      submit.after = after_.data();
      submit.after_count = static_cast<std::int32_t>(after_.size());
    }
    if (t_.how == way::graph) submit.graph = graph_;
    return submit;
  }

  // Why a step may be refused, or "".
  std::string allowed(const step_case &s, sg_status status) const {
    const std::string message = sg_last_error_message();
    const bool limited = s.options.memory_limit > 0 && !s.is_copy;
    const bool cut = (s.options.split != SG_SPLIT_AUTO || s.options.parts > 0) && !s.is_copy;
    if (status == SG_STATUS_OUT_OF_MEMORY && limited) return "too little memory";
    if (status == SG_STATUS_UNSUPPORTED && cut && message.find("split") != message.npos) return "no such split";
    const auto is_in = [&](std::initializer_list<sg_dtype> types) {
      return std::find(types.begin(), types.end(), s.gemm.in) != types.end();
    };
    const bool every_device_has_it = is_in({SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_C64, SG_DTYPE_C128});
    if (status == SG_STATUS_UNSUPPORTED && !s.is_copy && !every_device_has_it &&
        message.find("has no ") != message.npos)
      return "no such GEMM";
    if (status == SG_STATUS_UNSUPPORTED && !s.is_copy && s.options.device_count > 1 &&
        message.find("cannot be computed by") != message.npos)
      return "too little for several devices, or memory of one";
    // A stream of few compute units takes no plan for more.
    if (status == SG_STATUS_INVALID_ARGUMENT && s.call == call_form::plan &&
        message.find("compute units, and the plan") != message.npos)
      return "a plan for more compute units than the stream's";
    return "";
  }

  fault failure(int step, const char *call, sg_status status) const {
    fault f;
    f.what = std::string(call) + ": " + sg_status_name(status) + ": " + sg_last_error_message();
    f.step = step;
    return f;
  }

  std::optional<fault> accept(int step, const char *call, sg_status status) const {
    if (status == SG_STATUS_OK) return {};
    const std::string why = allowed(t_.steps[static_cast<std::size_t>(step < 0 ? 0 : step)], status);
    if (!why.empty()) throw refusal{why};
    return failure(step, call, status);
  }

  // The sum of all limits: a failure reported by a job instead of its submission.
  std::optional<fault> wait(int step, sg_job *job) {
    return accept(step, "sg_job_wait", sg_job_wait(job, SG_FOREVER, nullptr));
  }

  std::optional<fault> submit_step(std::size_t i) {
    const step_case &s = t_.steps[i];
    const int step = static_cast<int>(i);
    const sg_submit submit = submit_of(i, s.call != call_form::plan && !s.is_copy ? &s.options : nullptr);
    job handle;
    sg_job **const out = t_.how == way::graph ? nullptr : handle.out();
    std::optional<fault> wrong;
    if (s.is_copy) {
      const placed_copy &c = *copies_.at(i);
      wrong = s.copy.flat
                  ? accept(step, "sg_copy_async",
                           sg_copy_async(on_.context, c.dst.address(), c.src.address(),
                                         static_cast<std::uint64_t>(s.copy.width), &submit, out))
                  : accept(step, "sg_copy_2d_async",
                           sg_copy_2d_async(on_.context, c.dst.address(), static_cast<std::uint64_t>(c.dst_pitch()),
                                            c.src.address(), static_cast<std::uint64_t>(c.src_pitch()),
                                            static_cast<std::uint64_t>(s.copy.width),
                                            static_cast<std::uint64_t>(s.copy.height), &submit, out));
    } else {
      const sg_gemm_desc desc = gemms_.at(i)->desc();
      if (s.gemm.reads_foreign())
        if ((wrong = refuse_foreign(step, desc, submit))) return wrong;
      if (s.call == call_form::blas)
        wrong = accept(step, "sg_xgemm_async", submit_blas(s.gemm, desc, submit, out));
      else if (s.call == call_form::plan)
        wrong = submit_plan(i, desc, submit, out);
      else
        wrong = accept(step, "sg_gemm_async", sg_gemm_async(on_.context, &desc, &submit, out));
    }
    if (wrong) return wrong;
    if (t_.blocking && handle.get()) wrong = wait(step, handle);
    if (handle.get()) jobs_.push_back(std::move(handle));
    return wrong;
  }

  std::optional<fault> refuse_foreign(int step, sg_gemm_desc desc, const sg_submit &submit) {
    const int which = t_.steps[static_cast<std::size_t>(step)].gemm.foreign;
    void *const theirs = on_.foreign.data();
    if (which == 4)
      desc.bias = theirs;
    else
      (which == 1 ? desc.a : which == 2 ? desc.b : desc.c).data = theirs;
    const sg_status status = sg_gemm_async(on_.context, &desc, &submit, nullptr);
    if (foreign_memory::is_refusal(status)) return {};
    return failure(step, "sg_gemm_async with memory of another context", status);
  }

  sg_status submit_blas(const gemm_case &p, const sg_gemm_desc &d, const sg_submit &submit, sg_job **out) {
    const auto ld = [](const sg_matrix &v) {
      return v.ld ? v.ld : std::max<std::int64_t>(1, v.layout == SG_LAYOUT_ROW_MAJOR ? v.cols : v.rows);
    };
    const auto call = [&](auto f, auto zero) {
      using real = decltype(zero);
      return f(on_.context, d.c.layout, d.op_a, d.op_b, p.m, p.n, p.k, static_cast<real>(p.alpha.re),
               static_cast<const real *>(d.a.data), ld(d.a), static_cast<const real *>(d.b.data), ld(d.b),
               static_cast<real>(p.beta.re), static_cast<real *>(d.c.data), ld(d.c), &submit, out);
    };
    return p.in == SG_DTYPE_F32 ? call(sg_sgemm_async, float()) : call(sg_dgemm_async, double());
  }

  std::optional<fault> submit_plan(std::size_t i, const sg_gemm_desc &desc, const sg_submit &submit, sg_job **out) {
    const step_case &s = t_.steps[i];
    const int step = static_cast<int>(i);
    plan made;
    sg_gemm_desc shape = desc;
    sg_plan_options options = s.options;
    if (s.plan_without_pointers) {
      shape.a.data = shape.b.data = shape.c.data = nullptr;
      const auto kind = [](memory where) {
        return where == memory::ordinary ? SG_MEMORY_PAGEABLE
               : where == memory::device ? SG_MEMORY_DEVICE
                                         : SG_MEMORY_PINNED;
      };
      options.place_a = kind(s.gemm.a.where);
      options.place_b = kind(s.gemm.b.where);
      options.place_c = kind(s.gemm.c.where);
    }
    if (auto wrong = accept(step, "sg_plan_create", create_gemm_plan(on_.context, &shape, &options, made.out())))
      return wrong;
    sg_plan_prediction said = SG_PLAN_PREDICTION_INIT;
    if (auto wrong = accept(step, "sg_plan_get_prediction", sg_plan_get_prediction(made, &said))) return wrong;
    if (options.memory_limit > 0 && said.device_bytes > options.memory_limit) {
      fault f;
      f.step = step;
      f.what = "the plan takes " + std::to_string(said.device_bytes) + " bytes of device memory";
      return f;
    }
    return accept(step, "sg_plan_run_async", run_gemm_plan(made, &desc, &submit, out));
  }

  std::optional<fault> submit_all(int round) {
    jobs_.clear();
    if (t_.how == way::grouped) return submit_group();
    if (t_.how == way::graph && round == 0)
      if (auto wrong = accept(-1, "sg_graph_create", sg_graph_create(on_.context, graph_.out()))) return wrong;
    if (t_.how == way::jobs || round == 0)
      for (std::size_t i = 0; i < t_.steps.size(); ++i)
        if (auto wrong = submit_step(i)) return drained(wrong);
    if (t_.how == way::graph) {
      job handle;
      sg_submit submit = SG_SUBMIT_INIT;
      if (t_.untracked_run) submit.flags = SG_SUBMIT_UNTRACKED;
      if (auto wrong = accept(-1, "sg_graph_run_async", sg_graph_run_async(graph_, &submit, handle.out())))
        return wrong;
      jobs_.push_back(std::move(handle));
    }
    return wait_for_all();
  }

  std::optional<fault> submit_group() {
    std::vector<sg_gemm_desc> descs;
    for (auto &[i, p] : gemms_) descs.push_back(p->desc());
    sg_plan_options options = t_.steps[0].options;
    options.place_a = options.place_b = options.place_c = SG_MEMORY_AUTO;
    const sg_submit submit = submit_of(0, &options);
    job handle;
    if (auto wrong = accept(0, "sg_gemm_grouped_async",
                            sg_gemm_grouped_async(on_.context, descs.data(), static_cast<std::int32_t>(descs.size()),
                                                  &submit, handle.out())))
      return wrong;
    jobs_.push_back(std::move(handle));
    return wait_for_all();
  }

  std::optional<fault> wait_for_all() {
    std::optional<fault> first;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      auto wrong = wait(t_.how == way::jobs ? static_cast<int>(i) : -1, jobs_[i]);
      if (wrong && !first) first = wrong;
    }
    return first;
  }

  // No job is in flight any more when a test stops early.
  std::optional<fault> drained(std::optional<fault> wrong) {
    for (const job &j : jobs_) sg_job_wait(j, SG_FOREVER, nullptr);
    return wrong;
  }

  std::optional<fault> check_all() {
    const auto in_step = [](std::size_t i, fault f) {
      f.step = static_cast<int>(i);
      return f;
    };
    for (auto &[i, p] : gemms_)
      if (auto wrong = p->check(t_.steps[i].options.parts)) return in_step(i, *wrong);
    for (auto &[i, c] : copies_)
      if (auto wrong = c->check()) return in_step(i, *wrong);
    const std::string beside = on_.memory->neighbours();
    if (beside.empty()) return {};
    fault f;
    f.what = beside;
    return f;
  }

  bench &on_;
  const test_case &t_;
  std::map<std::size_t, std::unique_ptr<placed_gemm>> gemms_;
  std::map<std::size_t, std::unique_ptr<placed_copy>> copies_;
  owned<sg_graph, sg_graph_release> graph_;
  std::vector<job> jobs_;
  std::vector<sg_job *> after_;
};

}  // namespace

bench::bench(const char *device, bool check_hazards) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = device;
  options.flags = check_hazards ? SG_CONTEXT_CHECK_HAZARDS : SG_CONTEXT_DEFAULT;
  require_ok(sg_context_create(&options, &context), device);
  memory = std::make_unique<arena>(context);
  for (const int priority : {0, 0, -1, 1}) {
    sg_stream_options options_of_stream = SG_STREAM_OPTIONS_INIT;
    options_of_stream.priority = priority;
    require_ok(sg_stream_create(context, &options_of_stream, &streams.emplace_back()), "sg_stream_create");
  }
  sg_stream_options limited = SG_STREAM_OPTIONS_INIT;
  limited.compute_units = 1;
  sg_stream_create(context, &limited, &streams.emplace_back());  // not every device has a limit
  require_ok(sg_context_device_count(context, &devices), "sg_context_device_count");
  for (std::int32_t i = 0; i < devices && devices > 1; ++i) {
    sg_stream_options of_device = SG_STREAM_OPTIONS_INIT;
    of_device.device = i;
    sg_stream *stream = nullptr;
    require_ok(sg_stream_create(context, &of_device, &stream), "sg_stream_create");
    streams.push_back(stream);
  }
}

bench::~bench() {
  for (sg_stream *stream : streams)
    if (stream) sg_stream_release(stream);
  memory.reset();
  sg_context_release(context);
}

std::optional<fault> run(bench &on, const test_case &t, refusals &refused, fault *sample) {
  try {
    running r(on, t);
    try {
      auto wrong = r.everything();
      if (!wrong && sample) *sample = r.sample();
      return wrong;
    } catch (...) {
      sg_context_synchronize(on.context, SG_FOREVER);
      throw;
    }
  } catch (const refusal &r) {
    ++refused[r.why];
  } catch (const too_little_memory &) {
    ++refused["operands that do not fit the test's memory"];
  } catch (const std::exception &e) {
    fault f;
    f.what = e.what();
    return f;
  }
  return {};
}

}  // namespace sg_test::random_tests
