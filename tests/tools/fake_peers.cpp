// SPDX-License-Identifier: Apache-2.0
// Replaces the module with the GPU's libraries where there is no GPU: the same table, plain loops on host memory. It
// shows that the suites hand the same GEMMs to their peers and to the library.
#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/gpu_peers.hpp"

namespace sg::cli {
namespace {

void multiply(const gpu_gemm &p) {
  for (std::int64_t item = 0; item < p.batch; ++item) {
    const auto *a = static_cast<const float *>(p.a) + item * p.stride_a;
    const auto *b = static_cast<const float *>(p.b) + item * p.stride_b;
    auto *c = static_cast<float *>(p.c) + item * p.stride_c;
    for (std::int64_t j = 0; j < p.n; ++j) {
      float *const column = c + j * p.ldc;
      for (std::int64_t i = 0; i < p.m && p.beta == 0; ++i) column[i] = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        const float factor = p.op_b == SG_TRANSPOSE_N ? b[k + j * p.ldb] : b[j + k * p.ldb];
        const float *const of_a = p.op_a == SG_TRANSPOSE_N ? a + k * p.lda : a + k;
        const std::int64_t step = p.op_a == SG_TRANSPOSE_N ? 1 : p.lda;
        for (std::int64_t i = 0; i < p.m; ++i) column[i] += of_a[i * step] * factor;
      }
    }
  }
}

double seconds_of(const gpu_gemm *gemms, std::int32_t count) {
  const auto start = std::chrono::steady_clock::now();
  std::for_each(gemms, gemms + count, multiply);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

using gemm_list = std::vector<gpu_gemm>;

constexpr gpu_peer_table table = {
    .facts = [] { return "gpu: none\n"; },
    .link =
        [] {
          return gpu_link_rates{1, 1, 1};
        },
    // One for each order of two devices, which computes on no others.
    .host_count = [] { return std::int32_t{2}; },
    .host_name = [](std::int32_t peer) { return peer == 0 ? "devices 0 and 1" : "devices 1 and 0"; },
    .host =
        [](std::int32_t peer, const gpu_gemm *p) {
          const bool is_own = p->devices == 2 && p->device_numbers[0] == peer && p->device_numbers[1] == 1 - peer;
          return is_own && p->dtype == SG_DTYPE_F32 ? seconds_of(p, 1) : -1.0;
        },
    .resident = [](std::int32_t way, const gpu_gemm *p,
                   std::int32_t) { return way == 0 && p->dtype == SG_DTYPE_F32 ? seconds_of(p, 1) : -1.0; },
    .arithmetic = [](const gpu_gemm *) { return -1.0; },
    .many_prepare = [](gpu_way way, std::int32_t, const gpu_gemm *all, std::int32_t count) -> void * {
      if (way == gpu_way::pointers) return nullptr;  // a peer may lack a form
      return new gemm_list(all, all + count);
    },
    .many_run =
        [](void *many) {
          const auto &all = *static_cast<gemm_list *>(many);
          return seconds_of(all.data(), std::int32_t(all.size()));
        },
    .many_release = [](void *many) { delete static_cast<gemm_list *>(many); },
    .trickle =
        [](const gpu_trickle *how, double *latencies, std::int32_t capacity, std::int64_t *large_ended) {
          const std::int32_t count = std::min<std::int32_t>(capacity, 10);
          for (std::int32_t i = 0; i < count; ++i) latencies[i] = seconds_of(how->urgent + i % how->urgent_count, 1);
          *large_ended = how->large_count;
          return count;
        },
};

}  // namespace
}  // namespace sg::cli

extern "C" __attribute__((visibility("default"))) const sg::cli::gpu_peer_table *sg_bench_gpu_peers_6(void) {
  return &sg::cli::table;
}
