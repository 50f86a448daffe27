// SPDX-License-Identifier: Apache-2.0
#include "cpu_calls.hpp"

#include <chrono>
#include <memory>
#include <numeric>

#include "workload.hpp"

namespace sg::cli {

namespace {

using shared_workload = std::shared_ptr<workload>;

// The median over many calls in quick succession while the library works on them; the clock is read around each call
// and its cost is in the figure.
double each_call(workload &work, const std::function<void(int)> &call) {
  std::vector<double> seconds;
  seconds.reserve(std::size_t(work.count()));
  for (int i = 0; i < work.count(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    call(i);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return median(std::move(seconds));
}

bench_variant call_with_queue(sg_context *context, const shared_workload &work) {
  sg_queue *made = nullptr;
  check(sg_queue_create(context, nullptr, &made), "sg_queue_create");
  const std::shared_ptr<sg_queue> queue(made, sg_queue_release);
  return {own_variant, [context, work, queue] {
            sg_submit submit = SG_SUBMIT_INIT;
            submit.queue = queue.get();
            const double seconds = each_call(*work, [&](int i) {
              const sg_gemm_desc desc = work->desc(i);
              submit.tag = std::uint64_t(i);
              check(sg_gemm_async(context, &desc, &submit, nullptr), "sg_gemm_async");
            });
            std::vector<sg_completion> done(256);
            for (int left = work->count(); left > 0;) {
              std::int32_t count = 0;
              check(sg_queue_next_batch(queue.get(), done.data(), sizeof(sg_completion), int(done.size()), SG_FOREVER,
                                        &count),
                    "sg_queue_next_batch");
              for (int i = 0; i < count; ++i) check(done[std::size_t(i)].status, "a product");
              left -= count;
            }
            return seconds;
          }};
}

bench_variant call_with_handles(sg_context *context, const shared_workload &work) {
  return {"streamgemm, with handles", [context, work] {
            std::vector<sg_job *> jobs(std::size_t(work->count()));
            const double seconds = each_call(*work, [&](int i) {
              const sg_gemm_desc desc = work->desc(i);
              check(sg_gemm_async(context, &desc, nullptr, &jobs[std::size_t(i)]), "sg_gemm_async");
            });
            check(sg_job_wait_all(jobs.data(), work->count(), SG_FOREVER, nullptr), "sg_job_wait_all");
            for (sg_job *job : jobs) sg_job_release(job);
            return seconds;
          }};
}

// Calls into a blocked queue: the context's only lane is busy with large GEMMs all the while, so no worker uses the
// core, the caches or the locks that the calls need. The timer's cost is subtracted.
class held_queue {
 public:
  held_queue(const std::string &device, const shared_workload &work, bool quick)
      : context_(open_context({.device = device, .compute_lanes = 1})),
        work_(work),
        large_(shape{1024, 1024, quick ? 512 : 4096}, SG_DTYPE_F32, 1) {
    for (int i = 0; i < work_->count(); ++i) descs_.push_back(work_->desc(i));
  }

  std::vector<double> calls() {
    for (int attempt = 0; attempt < 6; ++attempt, holding_ *= 2) {
      std::vector<job_handle> before;
      for (int i = 0; i < holding_; ++i) before.push_back(submit_large());
      std::vector<double> seconds = timed_calls(int(descs_.size()), [this](int i) {
        check(sg_gemm_async(context_.get(), &descs_[std::size_t(i)], nullptr, nullptr), "sg_gemm_async");
      });
      const bool held = sg_job_query(before.back().get(), nullptr) == SG_STATUS_NOT_READY;
      check(sg_context_synchronize(context_.get(), SG_FOREVER), "sg_context_synchronize");
      if (held) return seconds;
    }
    throw failure(exit_code::failed, "the GEMMs before the calls completed too soon");
  }

 private:
  job_handle submit_large() {
    const sg_gemm_desc desc = large_.desc(0);
    sg_job *made = nullptr;
    check(sg_gemm_async(context_.get(), &desc, nullptr, &made), "sg_gemm_async");
    return job_handle(made);
  }

  context_handle context_;
  shared_workload work_;
  workload large_;
  std::vector<sg_gemm_desc> descs_;
  int holding_ = 1;
};

}  // namespace

void measure_call_cost(bool quick, sg_context *context, const std::vector<peer> &peers, suite_run &out) {
  const std::string name = "one call, gemm f32 32^3";
  if (!out.wants(name)) return;
  const auto work = std::make_shared<workload>(shape{32, 32, 32}, SG_DTYPE_F32, quick ? 1000 : 10000);
  const auto held = std::make_shared<held_queue>(device_of(context).name, work, quick);
  bench_case what{name, work->size().flops(), {call_with_queue(context, work), call_with_handles(context, work)}};
  what.variants.push_back({"streamgemm, queue held, median", [held] { return median(held->calls()); }});
  what.variants.push_back({"streamgemm, queue held, mean", [held] {
                             const std::vector<double> calls = held->calls();
                             return std::accumulate(calls.begin(), calls.end(), 0.0) / double(calls.size());
                           }});
  for (const peer &p : peers)
    if (const multiply_fn multiply = p.prepare(32, 32, 32, SG_DTYPE_F32, SG_TRANSPOSE_N))
      what.variants.push_back({p.name + " x1, the call and its work", [p, work, multiply] {
                                 const peer_threads running(p, 1);
                                 return each_call(*work, [&](int i) { multiply(work->a(i), work->b(i), work->c(i)); });
                               }});
  out.run(what);
}

}  // namespace sg::cli
