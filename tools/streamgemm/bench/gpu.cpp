// SPDX-License-Identifier: Apache-2.0
// The suites `host`, `outofcore`, `resident` and `split`: GEMMs on a GPU, from host memory or from its own.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "../library.hpp"
#include "drawn_cases.hpp"
#include "gpu_operands.hpp"
#include "suite.hpp"

namespace sg::cli {

namespace {

class gpu_suite {
 public:
  gpu_suite(const suite_request &request, suite_run &out, std::uint64_t memory_limit = 0, int lanes = 0)
      : request_(request),
        out_(out),
        peers_(load_gpu_peers(request.peers)),
        device_(request.device.empty() ? "cuda:0" : request.device),
        context_(open_context({.device = device_, .compute_lanes = lanes, .memory_limit = memory_limit})) {
    out_.note("device", device_of(context_.get()).name);
    if (!peers_) return;
    note_gpu_facts(*peers_, out_);
    link_ = peers_->link();
    out_.note("link_in_bytes_per_second", link_.in);
    out_.note("link_out_bytes_per_second", link_.out);
    out_.note("link_both_bytes_per_second", link_.both);
  }

  // From host memory to host memory, pinned and pageable.
  void host(std::vector<gpu_case> cases) {
    const std::size_t count = cases.size();
    for (std::size_t i = 0; i < count; ++i) {
      cases.push_back(cases[i]);
      cases.back().pinned = {};
    }
    placed(cases);
  }

  // From host memory to host memory, each operand in the memory of the case; over the bound of its plan.
  void drawn(const std::vector<gpu_case> &cases) {
    if (device_.starts_with("sim")) out_.note("clock", "virtual");
    bound_of_plan_ = true;
    placed(cases);
  }

  // From device memory: many GEMMs in a row, the time of one. They read the same A and B and each writes its own C, so
  // none waits for another; in a chain they write the same C, so each waits for the one before. Of drawn cases the
  // choice of the kernel is what counts: beside the best of cublasLt's.
  void resident(const std::vector<gpu_case> &cases) {
    const bool drawn = request_.draw > 0;
    for (const gpu_case &one : cases) {
      if (!out_.wants(one.label)) continue;
      const int times = request_.quick ? 5 : int(std::clamp(0.02 / (one.flops() / 3e14 + 5e-6), 5.0, 500.0));
      gpu_case x = one;
      x.outputs = std::clamp<std::int64_t>((std::int64_t{256} << 20) / x.bytes_c(), 2, times);
      const device_block memory(context_.get(), x);
      if (!tuned_) tuned_ = open_context({.device = device_, .flags = SG_CONTEXT_TUNE});
      const device_block of_tuned(tuned_.get(), x);  // device memory belongs to one context
      const operands apart(x, memory.data()), chained(one, memory.data()), tuned(x, of_tuned.data());
      bench_case what{x.label, x.flops(), {}};
      what.variants.push_back({own_variant, [=, this] { return in_a_row(context_.get(), apart, times); }});
      if (!drawn)
        what.variants.push_back(
            {"streamgemm, in a chain", [=, this] { return in_a_row(context_.get(), chained, times); }});
      in_a_row(tuned_.get(), tuned, 1);  // times the kernels
      what.variants.push_back({"streamgemm, tuned", [=, this] { return in_a_row(tuned_.get(), tuned, times); }});
      add_resident_peers(what, apart, times, drawn);
      out_.run(what);
    }
  }

  // One GEMM, resident and from pinned memory, cut over 1 to 16 streams.
  void split(const std::vector<gpu_case> &cases) {
    for (const gpu_case &x : cases) {
      const std::string resident_name = x.label + " resident", pinned_name = x.label + " pinned";
      if (out_.wants(resident_name)) {
        const device_block memory(context_.get(), x);
        add_splits(resident_name, x, memory.data());
      }
      if (out_.wants(pinned_name)) {
        const block memory(context_.get(), x.all_bytes(), true);
        add_splits(pinned_name, x, memory.data());
      }
    }
  }

 private:
  // Host memory for the largest case.
  class block {
   public:
    block(sg_context *context, std::int64_t bytes, bool pinned) : context_(context), pinned_(pinned) {
      void *memory = nullptr;
      if (pinned)
        check(sg_host_alloc(context, std::uint64_t(bytes), &memory), "pinned memory");
      else
        memory = std::aligned_alloc(4096, std::size_t(gpu_case::padded(bytes)));
      if (!memory) throw failure(exit_code::failed, "no memory for the operands");
      data_ = static_cast<char *>(memory);
    }
    ~block() {
      if (pinned_)
        sg_host_free(context_, data_);
      else
        std::free(data_);
    }
    block(const block &) = delete;
    block &operator=(const block &) = delete;
    char *data() const { return data_; }

   private:
    sg_context *context_;
    bool pinned_;
    char *data_;
  };

  // A case's operands on the device; the numbers repeat, since the host takes longer to make them than to send them.
  class device_block {
   public:
    static constexpr std::int64_t most_numbers = std::int64_t{48} << 20;  // in bytes

    device_block(sg_context *context, const gpu_case &x) {
      sg_buffer *made = nullptr;
      check(sg_buffer_create(context, std::uint64_t(x.all_bytes()), nullptr, &made), "device memory");
      buffer_.reset(made);
      void *memory = nullptr;
      check(sg_buffer_data(made, &memory), "device memory");
      data_ = static_cast<char *>(memory);
      std::vector<char> some(std::size_t(std::min(x.all_bytes(), most_numbers)));
      fill(x, some.data(), std::int64_t(some.size()), 5);
      for (std::int64_t at = 0; at < x.all_bytes(); at += most_numbers) {
        const auto bytes = std::uint64_t(std::min(most_numbers, x.all_bytes() - at));
        check(sg_copy(context, data_ + at, some.data(), bytes, nullptr), "copy of the operands");
      }
    }
    char *data() const { return data_; }

   private:
    std::unique_ptr<sg_buffer, releaser<sg_buffer_release>> buffer_;
    char *data_;
  };

  void placed(const std::vector<gpu_case> &cases) {
    std::array<std::int64_t, 2> most{};  // bytes of pageable and of pinned memory
    for (const gpu_case &x : cases)
      if (out_.wants(x.host_name()))
        for (const bool pinned : x.pinned) most[pinned] = std::max(most[pinned], x.all_bytes());
    std::array<std::unique_ptr<block>, 2> memory;
    for (const bool pinned : {false, true})
      if (most[pinned] > 0) memory[pinned] = std::make_unique<block>(context_.get(), most[pinned], pinned);
    for (const gpu_case &x : cases)
      if (out_.wants(x.host_name()))
        one_host(x, operands(x, memory[1] ? memory[1]->data() : nullptr, memory[0] ? memory[0]->data() : nullptr));
  }

  // The bound of the plan, by the model of the device.
  double planned_bound(const operands &at) const {
    const sg_gemm_desc desc = at.desc();
    sg_plan *made = nullptr;
    const sg_operation_desc gemm{sizeof gemm, SG_OPERATION_GEMM, 1, &desc};
    check(sg_plan_create(context_.get(), &gemm, nullptr, &made), "plan");
    const plan_handle plan(made);
    sg_plan_prediction says = SG_PLAN_PREDICTION_INIT;
    check(sg_plan_get_prediction(made, &says), "prediction");
    return says.bound_seconds;
  }

  double bound(const gpu_case &x, double arithmetic) const {
    const double in = double(x.bytes_a() + x.bytes_b()), out = double(x.m * x.n * x.size());
    return std::max({in / link_.in, out / link_.out, (in + out) / link_.both, arithmetic});
  }

  void one_host(const gpu_case &x, const operands &at) {
    fill(x, at.a, x.bytes_a(), 1);
    fill(x, at.b, x.bytes_b(), 2);
    std::memset(at.c, 0, std::size_t(x.bytes_c()));
    const auto seen = std::make_shared<seen_sample>(at);
    bench_case what{x.host_name(), x.flops(), {}};
    what.bytes_in = double(x.bytes_a() + x.bytes_b());
    what.bytes_out = double(x.m * x.n * x.size());
    prediction latest;
    what.own = &latest;
    what.variants.push_back({own_variant, [=, this, &latest] {
                               seen->poison();
                               const double seconds = timed([&] { run(at, nullptr, &latest); });
                               seen->compare(own_variant);
                               return seconds;
                             }});
    if (bound_of_plan_) what.bound_seconds = planned_bound(at);
    if (peers_) {
      const gpu_gemm gemm = at.gemm();
      if (!bound_of_plan_) what.bound_seconds = bound(x, peers_->arithmetic(&gemm));
      for (std::int32_t peer = 0; peer < peers_->host_count(); ++peer) {
        const std::string name = peers_->host_name(peer);
        if (name.ends_with("pinning") && x.all_pinned()) continue;
        if (peers_->host(peer, &gemm) < 0) continue;
        what.variants.push_back({name, [=, this] {
                                   seen->poison();
                                   const double seconds = peers_->host(peer, &gemm);
                                   seen->compare(name);
                                   return seconds;
                                 }});
      }
    }
    out_.run(what);
  }

  void run(const operands &at, const sg_plan_options *options, prediction *told) {
    const sg_gemm_desc desc = at.desc();
    sg_submit submit = SG_SUBMIT_INIT;
    submit.plan = options;
    sg_job *made = nullptr;
    check(sg_gemm_async(context_.get(), &desc, &submit, &made), "sg_gemm_async");
    const job_handle job(made);
    check(sg_job_wait(job.get(), SG_FOREVER, nullptr), "the GEMM");
    if (!told) return;
    const sg_job_statistics did = statistics_of(job.get());
    *told = {did.predicted_seconds, double(did.end_ns - did.start_ns) * 1e-9};
  }

  double in_a_row(sg_context *context, const operands &at, int times, const sg_plan_options *options = nullptr) {
    sg_submit submit = SG_SUBMIT_INIT;
    submit.plan = options;
    return timed([&] {
             for (int i = 0; i < times; ++i) {
               const sg_gemm_desc desc = at.desc(i);
               check(sg_gemm_async(context, &desc, &submit, nullptr), "sg_gemm_async");
             }
             check(sg_context_synchronize(context, SG_FOREVER), "sg_context_synchronize");
           }) /
           times;
  }

  void add_resident_peers(bench_case &what, const operands &at, int times, bool only_the_best) {
    if (!peers_) return;
    const gpu_gemm gemm = at.gemm();
    if (!only_the_best)
      what.variants.push_back({"cublasGemmEx", [=, this] { return peers_->resident(0, &gemm, times); }});
    // The best of cublasLt's candidates, found by one timed run of each.
    const int to_find = std::max(times / 4, 3);
    std::int32_t best = 0;
    double best_seconds = HUGE_VAL;
    for (std::int32_t way = 1; way <= gpu_peer_table::most_proposals; ++way) {
      if (peers_->resident(way, &gemm, 1) < 0) break;
      const double seconds = peers_->resident(way, &gemm, to_find);
      if (seconds < best_seconds) best = way, best_seconds = seconds;
    }
    if (best > 0) {
      if (!only_the_best)
        what.variants.push_back({"cublasLt, its first", [=, this] { return peers_->resident(1, &gemm, times); }});
      what.variants.push_back({"cublasLt, best of 16", [=, this] { return peers_->resident(best, &gemm, times); }});
    }
  }

  void add_splits(const std::string &name, const gpu_case &x, char *memory) {
    const operands at(x, memory);
    const bool resident = name.ends_with("resident");
    if (!resident) fill(x, memory, x.bytes_a() + x.bytes_b(), 3);
    bench_case what{name, x.flops(), {}};
    const auto timed_run = [=, this](const sg_plan_options *options) {
      return resident ? in_a_row(context_.get(), at, 5, options) : timed([&] { run(at, options, nullptr); });
    };
    what.variants.push_back({own_variant, [=] { return timed_run(nullptr); }});
    for (const int parts : {1, 2, 4, 8, 16}) {
      sg_plan_options options = SG_PLAN_OPTIONS_INIT;
      options.split = parts == 1 ? SG_SPLIT_NONE : SG_SPLIT_N;
      options.parts = parts;
      options.streams = parts;
      what.variants.push_back(
          {"in " + std::to_string(parts) + (parts == 1 ? " part" : " parts"), [=] { return timed_run(&options); }});
    }
    out_.run(what);
  }

  const suite_request &request_;
  suite_run &out_;
  const gpu_peer_table *peers_;
  const std::string device_;
  context_handle context_, tuned_;
  gpu_link_rates link_{1, 1, 1};
  bool bound_of_plan_ = false;
};

std::vector<gpu_case> cube(std::int64_t n) {
  const std::string size = std::to_string(n) + "^3";
  return {{"f32 " + size, n, n, n},
          {"tf32 " + size, n, n, n, SG_DTYPE_F32, SG_COMPUTE_TF32},
          {"bf16 " + size, n, n, n, SG_DTYPE_BF16}};
}

std::string text_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
}

}  // namespace

void run_host_suite(const suite_request &request, suite_run &run) {
  if (request.draw > 0) return gpu_suite(request, run).drawn(drawn_cases(request));
  std::vector<gpu_case> cases;
  for (const std::int64_t n : request.quick ? std::vector<std::int64_t>{1024} : std::vector<std::int64_t>{8192, 16384})
    for (const gpu_case &x : cube(n)) cases.push_back(x);
  if (!request.quick)
    for (const auto &[m, n, k] : {std::tuple{30000, 30000, 3000}, {1000, 1000, 5000}})
      cases.push_back({"f64 " + text_of(m, n, k), m, n, k, SG_DTYPE_F64});
  const std::int64_t by = request.quick ? 8 : 1;
  for (const sg_compute compute : {SG_COMPUTE_EXACT, SG_COMPUTE_TF32})
    for (const auto &[op_a, op_b, ops] :
         {std::tuple{SG_TRANSPOSE_N, SG_TRANSPOSE_T, "NT"}, {SG_TRANSPOSE_T, SG_TRANSPOSE_N, "TN"}})
      cases.push_back({(compute == SG_COMPUTE_TF32 ? "tf32 " : "f32 ") + text_of(8191 / by, 4097 / by, 5003 / by) +
                           " " + ops + " padded",
                       8191 / by, 4097 / by, 5003 / by, SG_DTYPE_F32, compute, op_a, op_b, 5});
  gpu_suite(request, run).host(cases);
}

void run_outofcore_suite(const suite_request &request, suite_run &run) {
  const std::int64_t m = request.quick ? 2048 : 32768, k = m / 2;
  const std::uint64_t limit = std::uint64_t{request.quick ? 16u : 4096u} << 20;
  run.note("memory_limit_bytes", limit);
  gpu_suite(request, run, limit)
      .host(
          {{"f32 " + text_of(m, m, k), m, m, k}, {"tf32 " + text_of(m, m, k), m, m, k, SG_DTYPE_F32, SG_COMPUTE_TF32}});
}

void run_resident_suite(const suite_request &request, suite_run &run) {
  if (request.draw > 0) return gpu_suite(request, run).resident(drawn_resident_cases(request));
  constexpr struct {
    std::int64_t m, n, k;
  } shapes[] = {{256, 256, 256},    {512, 512, 512},    {1024, 1024, 1024}, {2048, 2048, 2048},
                {4096, 4096, 4096}, {8192, 8192, 8192}, {4096, 16, 4096},   {4096, 128, 4096},
                {11008, 512, 4096}, {64, 64, 16384},    {16384, 64, 64},    {1000, 3000, 777}};
  std::vector<gpu_case> cases;
  for (const auto &s : shapes) {
    if (request.quick && s.m * s.n > 1024 * 1024) continue;
    const std::string size = text_of(s.m, s.n, s.k);
    cases.push_back({"f64 " + size, s.m, s.n, s.k, SG_DTYPE_F64});
    cases.push_back({"f32 " + size, s.m, s.n, s.k});
    cases.push_back({"tf32 " + size, s.m, s.n, s.k, SG_DTYPE_F32, SG_COMPUTE_TF32});
    cases.push_back({"bf16 " + size, s.m, s.n, s.k, SG_DTYPE_BF16});
    cases.push_back({"f16 " + size, s.m, s.n, s.k, SG_DTYPE_F16});
  }
  gpu_suite(request, run).resident(cases);
}

void run_split_suite(const suite_request &request, suite_run &run) {
  std::vector<gpu_case> cases = cube(request.quick ? 1024 : 8192);
  cases.pop_back();  // f32 and tf32 show it
  gpu_suite(request, run, 0, 16).split(cases);
}

}  // namespace sg::cli
