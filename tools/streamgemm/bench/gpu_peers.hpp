// SPDX-License-Identifier: Apache-2.0
// The GPU libraries that StreamGEMM is measured against, behind a table in a module of their own
// (libstreamgemm-bench-cuda.so, bench/cuda_peers.cpp): the program itself links no CUDA library.
#pragma once

#include <streamgemm/gemm.h>

#include <cstdint>
#include <string>

namespace sg::cli {

class suite_run;

// C = op(A) * op(B) + beta * C, column-major; C has A's type. `batch` of them at strides in elements.
struct gpu_gemm {
  std::int64_t m, n, k;
  sg_dtype dtype;
  sg_compute compute;
  sg_transpose op_a, op_b;
  std::int64_t lda, ldb, ldc;
  const void *a, *b;
  void *c;
  std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
  double beta = 0;
  // For GEMMs in a row: the number of Cs that they write cyclically, and the bytes from one to the next.
  std::int64_t outputs = 1, output_step = 0;
  // Of host() alone: the GPUs' numbers; nullptr: the first one.
  std::int32_t devices = 1;
  const std::int32_t *device_numbers = nullptr;
};

// The way in which many resident GEMMs are sent.
enum class gpu_way : std::int32_t {
  synchronous,  // a call each, and a wait for its completion
  streams,      // a call each, over some streams cyclically; one wait
  strided,      // one strided-batched call
  pointers,     // one pointer-array call; the arrays are on the device already
  grouped,      // one grouped call, a group for each shape; the arrays are on the device already
  graph         // one launch of a graph that was captured from `streams`
};

// An urgent GEMM every millisecond on a stream of its own, beside large ones that are always queued on another.
struct gpu_trickle {
  const gpu_gemm *urgent, *large;  // each used cyclically
  std::int32_t urgent_count, large_count;
  std::int32_t high_priority;              // of the urgent GEMMs' stream: 1 or 0
  std::int32_t urgent_units, large_units;  // multiprocessors that cuBLAS should plan for; 0: all
  double seconds;
};

// The device's rates in this run, in bytes per second.
struct gpu_link_rates {
  double in, out, both;
};

struct gpu_peer_table {
  static constexpr std::int32_t most_proposals = 16;  // of cublasLt for a GEMM

  // Device properties as text, one "key: value" a line.
  const char *(*facts)();
  gpu_link_rates (*link)();
  // From host to host, by each peer; seconds, or negative if the peer has no such GEMM.
  std::int32_t (*host_count)();
  const char *(*host_name)(std::int32_t peer);
  double (*host)(std::int32_t peer, const gpu_gemm *what);
  // Operands on the device. `way` 0: cublasGemmEx; from 1 on: cublasLt's proposals, best first. Seconds of one of
  // `times` GEMMs in a row, or negative if there is no such proposal.
  double (*resident)(std::int32_t way, const gpu_gemm *what, std::int32_t times);
  // The arithmetic alone of a GEMM whose operands are on the host or the device; negative if they do not fit the device
  // once more.
  double (*arithmetic)(const gpu_gemm *what);
  // Many GEMMs, prepared once and run many times. Preparation creates the objects that a careful user would keep: a
  // handle with a workspace for each stream, arrays of pointers on the device, an instantiated graph. nullptr if they
  // cannot be sent that way. With more than one stream the GEMMs must be independent.
  void *(*many_prepare)(gpu_way way, std::int32_t streams, const gpu_gemm *gemms, std::int32_t count);
  double (*many_run)(void *many);  // seconds until the last has completed; negative after a failure
  void (*many_release)(void *many);
  // Writes at most `capacity` latencies in seconds, and how many of the large GEMMs completed meanwhile. Returns the
  // number of latencies; negative after a failure.
  std::int32_t (*trickle)(const gpu_trickle *how, double *latencies, std::int32_t capacity, std::int64_t *large_ended);
};

inline constexpr const char *gpu_peers_symbol = "sg_bench_gpu_peers_6";

const gpu_peer_table *load_gpu_peers(const std::string &path);  // nullptr without a path. Throws failure.
void note_gpu_facts(const gpu_peer_table &peers, suite_run &run);

// The cuBLAS arguments with the same result as a row-major submission.
gpu_gemm gpu_gemm_of(const sg_gemm_desc &desc);

}  // namespace sg::cli
