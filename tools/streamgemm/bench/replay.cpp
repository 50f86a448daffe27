// SPDX-License-Identifier: Apache-2.0
// The suite `graph`: submissions recorded once and replayed, beside separate submissions each time.
#include <algorithm>

#include "senders.hpp"

namespace sg::cli {

namespace {

void add_own(small_suite &suite, bench_case &what, gemm_set &set, const submissions &all) {
  suite.add(what, set, own_variant, send_recorded(suite.context(), all));
  suite.add(what, set, "streamgemm, one by one", send_one_by_one(suite.context(), all));
}

void replay_independent(small_suite &suite, const shape &size, int count) {
  const std::string name = std::to_string(count) + " gemm f32 " + size.text() + ", recorded";
  if (!suite.wants(name)) return;
  gemm_set set(suite.context(), std::vector(std::size_t(count), size));
  const submissions all = set.one_by_one();
  bench_case what{name, set.flops(), {}};
  what.products = count;
  add_own(suite, what, set, all);
  suite.add(what, set, "streamgemm, one batch", send_one_by_one(suite.context(), {set.batch(0, count)}));
  suite.add_gpu_peer(what, set, "cuBLAS, one stream", gpu_way::streams, 1, all);
  suite.add_gpu_peer(what, set, "cuBLAS, strided batch", gpu_way::strided, 1, all);
  suite.add_gpu_peer(what, set, "cuBLAS, pointer batch", gpu_way::pointers, 1, all);
  suite.add_gpu_peer(what, set, "CUDA graph, one stream", gpu_way::graph, 1, all);
  suite.add_gpu_peer(what, set, "CUDA graph, 32 streams", gpu_way::graph, 32, all);
  suite.add_cpu_peers(what, set, all);
  suite.run(what);
}

// Each GEMM is added to the result of the previous ones in C.
void replay_chain(small_suite &suite, const shape &size, int count) {
  const std::string name = "chain of " + std::to_string(count) + " gemm f32 " + size.text() + ", recorded";
  if (!suite.wants(name)) return;
  gemm_set set(suite.context(), std::vector(std::size_t(count), size), {.one_sum = true});
  const submissions all = set.one_by_one();
  bench_case what{name, set.flops(), {}};
  what.products = count;
  add_own(suite, what, set, all);
  suite.add_gpu_peer(what, set, "cuBLAS, one stream", gpu_way::streams, 1, all);
  suite.add_gpu_peer(what, set, "CUDA graph, one stream", gpu_way::graph, 1, all);
  suite.run(what);
}

}  // namespace

void run_graph_suite(const suite_request &request, suite_run &run) {
  small_suite suite(request, run);
  replay_independent(suite, {64, 64, 1024}, request.quick ? 16 : 512);
  request.quick ? replay_chain(suite, {64, 64, 64}, 8) : replay_chain(suite, {512, 512, 512}, 64);
}

}  // namespace sg::cli
