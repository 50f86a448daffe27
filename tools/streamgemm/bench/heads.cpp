// SPDX-License-Identifier: Apache-2.0
// The suite `heads`: the scores of multi-head attention, Q * K^T, one submission for each head and in one call.
#include "senders.hpp"

namespace sg::cli {

namespace {

constexpr int heads = 12;

// `items` sequences; the matrices of a head are contiguous, or those of a sequence are, as models store them.
void measure_heads(small_suite &suite, const shape &size, int items, bool by_sequence) {
  const gemm_kind kind{SG_DTYPE_BF16, suite.on_host() ? SG_DTYPE_F32 : SG_DTYPE_BF16, SG_TRANSPOSE_T};
  const std::string name = std::to_string(items) + " x " + std::to_string(heads) + " heads, " + size.text() + " bf16" +
                           (by_sequence ? ", interleaved" : "");
  if (!suite.wants(name)) return;
  gemm_set set(suite.context(), std::vector(std::size_t(items * heads), size), kind);
  submissions each_head;
  for (int h = 0; h < heads; ++h)
    each_head.push_back(by_sequence ? set.batch(h, items, heads) : set.batch(h * items, items));
  const submissions one_call = {set.batch(0, items * heads)};

  bench_case what{name, set.flops(), {}};
  what.products = set.count();
  suite.add(what, set, own_variant, send_one_by_one(suite.context(), each_head));
  suite.add(what, set, "streamgemm, untracked", send_one_by_one(suite.context(), each_head, SG_SUBMIT_UNTRACKED));
  suite.add(what, set, "streamgemm, 12 streams", send_over_streams(suite.context(), each_head, heads));
  suite.add(what, set, "streamgemm, one strided call", send_one_by_one(suite.context(), one_call));
  suite.add_gpu_peer(what, set, "cuBLAS, one by one", gpu_way::streams, 1, each_head);
  suite.add_gpu_peer(what, set, "cuBLAS, 12 streams", gpu_way::streams, heads, each_head);
  suite.add_gpu_peer(what, set, "cuBLAS, one strided call", gpu_way::strided, 1, one_call);
  suite.add_cpu_peers(what, set, each_head);
  suite.run(what);
}

}  // namespace

void run_heads_suite(const suite_request &request, suite_run &run) {
  small_suite suite(request, run);
  const shape size = request.quick ? shape{64, 64, 64} : shape{512, 512, 64};
  const int items =
      suite.on_host() || request.quick ? 4 : 64;  // larger cases take too long and too much memory on a CPU
  measure_heads(suite, size, items, false);
  measure_heads(suite, size, items, true);
  measure_heads(suite, size, 1, false);
}

}  // namespace sg::cli
