// SPDX-License-Identifier: Apache-2.0
// The GPU libraries that StreamGEMM is measured against, behind a table in a module of their own
// (libstreamgemm-bench-cuda.so, bench/cuda_peers.cpp): the program itself links no CUDA library.
#pragma once

#include <cstdint>

#include <streamgemm/types.h>

namespace sg::cli {

// C = op(A) * op(B), column major; C has A's type.
struct gpu_product {
  std::int64_t m, n, k;
  sg_dtype dtype;
  sg_compute compute;
  sg_op op_a, op_b;
  std::int64_t lda, ldb, ldc;
  const void *a, *b;
  void *c;
};

// What the device did in this run, in bytes per second.
struct gpu_link_rates {
  double in, out, both;
};

struct gpu_peer_table {
  // Text of facts, one "key: value" a line.
  const char *(*facts)();
  gpu_link_rates (*link)();
  // From host to host, by each peer; seconds, or negative where the peer has no such product.
  std::int32_t (*host_count)();
  const char *(*host_name)(std::int32_t peer);
  double (*host)(std::int32_t peer, const gpu_product *what);
  // Operands on the device. `way` 0: cublasGemmEx; from 1 on: cublasLt's candidates, best first. Seconds of one of
  // `times` products in a row, or negative where there is no such candidate.
  double (*resident)(std::int32_t way, const gpu_product *what, std::int32_t times);
  // The arithmetic alone of a product whose operands lie on the host; negative where they do not fit the device.
  double (*arithmetic)(const gpu_product *what);
};

inline constexpr const char *gpu_peers_symbol = "sg_bench_gpu_peers_1";

}  // namespace sg::cli
