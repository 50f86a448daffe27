// SPDX-License-Identifier: Apache-2.0
// Shared by the peers on a GPU: checks, types as cuBLAS names them, and objects that a careful user creates once.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <functional>

#include "bench/gpu_peers.hpp"

namespace sg::cli {

void check(bool ok, const char *what);  // Throws std::runtime_error.
#define CHECK(call) check((call) == 0, #call)

double timed(const std::function<void()> &work);

struct types {
  cudaDataType data;
  cublasComputeType_t compute;
  std::size_t size;
};
bool types_of(const gpu_gemm &p, types &out);

// Scalars in the type of the arithmetic.
struct scalars {
  double f64[2] = {1, 0};
  float f32[2] = {1, 0};
  const void *one(const types &t) const { return t.size == 8 ? static_cast<const void *>(&f64[0]) : &f32[0]; }
  const void *zero(const types &t) const { return t.size == 8 ? static_cast<const void *>(&f64[1]) : &f32[1]; }
};
inline constexpr scalars constants;
inline const void *scalar(const types &t, double value) { return value == 0 ? constants.zero(t) : constants.one(t); }

inline cublasOperation_t op_of(sg_transpose op) { return op == SG_TRANSPOSE_N ? CUBLAS_OP_N : CUBLAS_OP_T; }

class gpu {
 public:
  gpu();

  char *memory(std::size_t bytes);  // on the device; only grows; nullptr if there is not enough
  void multiply(const gpu_gemm &p, const types &t, const void *a, const void *b, void *c);
  double by_events(const std::function<void()> &work);

  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
  cudaStream_t stream, other;
  cublasHandle_t blas;
  cublasLtHandle_t lt;
  cudaEvent_t start, end;
  void *workspace = nullptr;

 private:
  char *memory_ = nullptr;
  std::size_t held_ = 0;
};

gpu &the_gpu();

// A stream with its own handle and workspace, so that switching streams costs a caller nothing.
struct lane {
  explicit lane(int priority = 0);  // CUDA's numbers: the lowest is the most urgent
  ~lane();
  lane(const lane &) = delete;
  lane &operator=(const lane &) = delete;
  cudaStream_t stream = nullptr;
  cublasHandle_t blas = nullptr;
  cudaEvent_t event = nullptr;
  void *workspace = nullptr;
};
void call(const lane &on, const gpu_gemm &p, const types &t);

// No exception leaves the module: a failure is reported and gives no figure.
void tell_failure(const char *what) noexcept;

// gpu_peer_table's functions for many GEMMs: cuda_many.cpp.
void *many_prepare(gpu_way way, std::int32_t streams, const gpu_gemm *gemms, std::int32_t count);
double many_run(void *many);
void many_release(void *many);

// Its trickle: cuda_trickle.cpp.
std::int32_t trickle(const gpu_trickle *how, double *latencies, std::int32_t capacity, std::int64_t *large_ended);

}  // namespace sg::cli
