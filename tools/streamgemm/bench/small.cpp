// SPDX-License-Identifier: Apache-2.0
// The suite `small`: many small independent GEMMs, submitted in every way; the cost of one submission; and one GEMM
// alone.
#include <algorithm>

#include "senders.hpp"

namespace sg::cli {

namespace {

struct small_case {
  std::string name;
  std::vector<shape> shapes;  // of the GEMMs
  bool equal = true;
};

small_case equal_shapes(const shape &size, int count) {
  return {std::to_string(count) + " gemm f32 " + size.text(), std::vector(std::size_t(count), size)};
}

// 16 shapes cyclically, from 16 to 256, like a server's requests.
small_case mix(int count) {
  constexpr std::int64_t m[] = {16, 64, 128, 256}, nk[][2] = {{64, 64}, {256, 64}, {64, 256}, {128, 128}};
  std::vector<shape> shapes;
  for (int i = 0; i < count; ++i) {
    const auto &[n, k] = nk[(i / 4 + i / 16) % 4];
    shapes.push_back({m[i % 4], n, k});
  }
  return {std::to_string(count) + " gemm f32 mix of 16 shapes", shapes, false};
}

std::string over_streams(int streams) {
  return streams == 1 ? "cuBLAS, one stream" : "cuBLAS, " + std::to_string(streams) + " streams";
}

void measure_ways(small_suite &suite, const small_case &x) {
  if (!suite.wants(x.name)) return;
  gemm_set set(suite.context(), x.shapes);
  const submissions all = set.one_by_one();
  bench_case what{x.name, set.flops(), {}};
  what.products = set.count();

  suite.add(what, set, own_variant, send_one_by_one(suite.context(), all));
  for (const int threads : {4, 8, 16})
    suite.add(what, set, "streamgemm, " + std::to_string(threads) + " threads",
              send_by_threads(suite.context(), all, threads));
  suite.add(
      what, set, "streamgemm, one batch",
      x.equal ? send_one_by_one(suite.context(), {set.batch(0, set.count())}) : send_grouped(suite.context(), all));
  if (x.equal) {
    suite.add(what, set, "streamgemm, pointer batch", send_pointer_batch(suite.context(), all));
    suite.add(what, set, "streamgemm, grouped", send_grouped(suite.context(), all));
  }
  suite.add(what, set, "streamgemm, recorded graph", send_recorded(suite.context(), all));
  // Device memory belongs to one context.
  gemm_set apart(suite.without_coalescing(), x.shapes);
  suite.add(what, apart, "streamgemm, no coalescing", send_one_by_one(suite.without_coalescing(), apart.one_by_one()));

  suite.add_gpu_peer(what, set, "cuBLAS, synchronous", gpu_way::synchronous, 1, all);
  for (const int streams : {1, 4, 8, 16, 32})
    suite.add_gpu_peer(what, set, over_streams(streams), gpu_way::streams, streams, all);
  suite.add_gpu_peer(what, set, "cuBLAS, strided batch", gpu_way::strided, 1, all);
  suite.add_gpu_peer(what, set, "cuBLAS, pointer batch", gpu_way::pointers, 1, all);
  suite.add_gpu_peer(what, set, "cuBLAS, grouped", gpu_way::grouped, 1, all);
  suite.add_gpu_peer(what, set, "CUDA graph, one stream", gpu_way::graph, 1, all);
  suite.add_gpu_peer(what, set, "CUDA graph, 32 streams", gpu_way::graph, 32, all);
  suite.add_cpu_peers(what, set, all);
  suite.run(what);
}

// The cost of a call to the calling thread, while the device works on earlier calls.
void measure_submission(small_suite &suite, const small_case &x) {
  const std::string name = "one submission of " + x.name;
  if (!suite.wants(name)) return;
  gemm_set set(suite.context(), x.shapes);
  const submissions all = set.one_by_one();
  sg_context *const context = suite.context();
  const int rounds = suite.quick() ? 1 : (20000 + set.count() - 1) / set.count();

  const auto calls = [=](bool with_handles) {
    std::vector<double> seconds;
    std::vector<sg_job *> jobs(with_handles ? all.size() : 0);
    for (int r = 0; r < rounds; ++r) {
      const std::vector<double> round = timed_calls(int(all.size()), [&](int i) {
        check(sg_gemm_async(context, &all[std::size_t(i)], nullptr, with_handles ? &jobs[std::size_t(i)] : nullptr),
              "sg_gemm_async");
      });
      seconds.insert(seconds.end(), round.begin(), round.end());
      check(sg_context_synchronize(context, SG_FOREVER), "sg_context_synchronize");
      for (sg_job *job : jobs) sg_job_release(job);
    }
    return seconds;
  };
  const auto mean = [](const std::vector<double> &all_of) {
    double sum = 0;
    for (const double each : all_of) sum += each;
    return sum / double(all_of.size());
  };
  bench_case what{name, 0, {}};  // the time of a call, in which nothing is computed
  what.variants = {{"submit, median", [=] { return median(calls(false)); }},
                   {"submit, mean", [=] { return mean(calls(false)); }},
                   {"submit, 99th percentile", [=] { return percentile(calls(false), 0.99); }},
                   {"submit with handles, median", [=] { return median(calls(true)); }},
                   {"submit with handles, mean", [=] { return mean(calls(true)); }}};
  for (const int threads : {4, 8, 16})
    what.variants.push_back({"submit from " + std::to_string(threads) + " threads, 99th percentile",
                             [=, times = time_submissions_by_threads(context, all, threads)] {
                               std::vector<double> seconds;
                               for (int r = 0; r < rounds; ++r) {
                                 const std::vector<double> round = times();
                                 seconds.insert(seconds.end(), round.begin(), round.end());
                               }
                               return percentile(seconds, 0.99);
                             }});
  suite.run(what);
}

// From the call to the result of a GEMM on an idle device.
void measure_alone(small_suite &suite, const shape &size) {
  const std::string name = "one gemm f32 " + size.text() + " alone";
  if (!suite.wants(name)) return;
  gemm_set set(suite.context(), {size});
  const submissions all = set.one_by_one();
  bench_case what{name, set.flops(), {}};
  suite.add(what, set, own_variant, [context = suite.context(), desc = all[0]] {
    return timed([&] {
      sg_job *job = nullptr;
      check(sg_gemm_async(context, &desc, nullptr, &job), "sg_gemm_async");
      const job_handle held(job);
      check(sg_job_wait(job, SG_FOREVER, nullptr), "the GEMM");
    });
  });
  suite.add_gpu_peer(what, set, "cuBLAS, call and synchronize", gpu_way::synchronous, 1, all);
  suite.add_cpu_peers(what, set, all);
  suite.run(what);
}

}  // namespace

void run_small_suite(const suite_request &request, suite_run &run) {
  small_suite suite(request, run);
  const auto many = [&](int count) { return request.quick ? std::max(4, count / 64) : count; };
  const int few = request.quick ? 2 : 8;  // deep ones may be faster one by one, each sharing its depth
  const std::vector<small_case> cases = {equal_shapes({64, 64, 1024}, many(512)),
                                         equal_shapes({32, 32, 32}, many(512)),
                                         equal_shapes({128, 128, 128}, many(512)),
                                         equal_shapes({256, 256, 256}, many(256)),
                                         equal_shapes({512, 512, 64}, many(128)),
                                         equal_shapes({512, 512, 512}, many(64)),
                                         equal_shapes({64, 64, 1024}, few),
                                         equal_shapes({64, 64, request.quick ? 2048 : 16384}, few),
                                         mix(request.quick ? 32 : 512)};
  for (const small_case &x : cases) measure_ways(suite, x);
  for (int i = 0; i < 2; ++i) measure_submission(suite, cases[std::size_t(i)]);
  measure_alone(suite, {128, 128, 128});
}

}  // namespace sg::cli
