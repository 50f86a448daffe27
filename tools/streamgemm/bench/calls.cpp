// SPDX-License-Identifier: Apache-2.0
// The suite `calls`: blocking GEMMs on the cpu, small ones first, beside the same calls of CBLAS: the time of a program
// that multiplies one matrix after another.
#include <algorithm>
#include <memory>
#include <thread>

#include "../library.hpp"
#include "peers.hpp"
#include "suite.hpp"
#include "workload.hpp"

namespace sg::cli {

namespace {

class calls_suite {
 public:
  calls_suite(const suite_request &request, suite_run &out)
      : quick_(request.quick),
        out_(out),
        context_(open_context({.device = request.device.empty() ? "cpu" : request.device})),
        peers_(load_cpu_peers().cblas),
        cores_(int(std::max(1u, std::thread::hardware_concurrency()))) {
    out_.note("cores", cores_);
    for (const peer &p : peers_) out_.note(p.name, p.version);
  }

  void run() {
    for (const sg_dtype type : {SG_DTYPE_F32, SG_DTYPE_F64})
      for (std::int64_t n = 4; n <= (quick_ ? 32 : 512); n *= 2) blocking({n, n, n}, type);
    // Matrix times vector, and vector times matrix.
    for (const shape &size : {shape{100, 1, 100}, shape{1, 100, 100}, shape{1000, 1, 1000}, shape{1, 1000, 1000}})
      blocking(size, SG_DTYPE_F64);
  }

 private:
  // A round is some calls, each of which returns before the next starts.
  void blocking(const shape &size, sg_dtype type) {
    const std::string name = std::string("blocking gemm ") + sg_dtype_name(type) + " " + size.text();
    if (!out_.wants(name)) return;
    const int calls = int(std::clamp(2e7 / size.flops(), 1.0, 2000.0));
    const auto work = std::make_shared<workload>(size, type, 1);
    bench_case what{name, size.flops() * calls, {}};
    what.products = calls;
    what.variants.push_back(ours(work, calls, own_variant, [this](const sg_gemm_desc &desc) {
      check(sg_gemm(context_.get(), &desc, nullptr), "sg_gemm");
    }));
    what.variants.push_back(ours(work, calls, "streamgemm, submitted and waited for", [this](const sg_gemm_desc &desc) {
      sg_job *job = nullptr;
      check(sg_gemm_async(context_.get(), &desc, nullptr, &job), "sg_gemm_async");
      check(sg_job_wait(job, SG_FOREVER, nullptr), "sg_job_wait");
      sg_job_release(job);
    }));
    for (const peer &p : peers_)
      for (const int threads : cores_ > 1 ? std::vector{cores_, 1} : std::vector{1}) {
        const std::string variant = p.name + " x" + std::to_string(threads);
        const multiply_fn multiply = p.prepare(size.m, size.n, size.k, type, SG_TRANSPOSE_N);
        if (!multiply) continue;
        what.variants.push_back({variant, [p, threads, multiply, work, calls, variant] {
                                   const peer_threads running(p, threads);
                                   return work->checked(variant, [&] {
                                     for (int i = 0; i < calls; ++i) multiply(work->a(0), work->b(0), work->c(0));
                                   });
                                 }});
      }
    out_.run(what);
  }

  static bench_variant ours(const std::shared_ptr<workload> &work, int calls, const std::string &variant,
                            std::function<void(const sg_gemm_desc &)> call) {
    return {variant, [work, calls, variant, call] {
              const sg_gemm_desc desc = work->desc(0);
              return work->checked(variant, [&] {
                for (int i = 0; i < calls; ++i) call(desc);
              });
            }};
  }

  bool quick_;
  suite_run &out_;
  context_handle context_;
  std::vector<peer> peers_;
  int cores_;
};

}  // namespace

void run_calls_suite(const suite_request &request, suite_run &run) { calls_suite(request, run).run(); }

}  // namespace sg::cli
