// SPDX-License-Identifier: Apache-2.0
// C = activation(C + bias), of many GEMMs in one launch.
#include <algorithm>

#include "arithmetic.cuh"
#include "kernels.hpp"

namespace sg::cuda {
inline namespace epilogue_cu {

constexpr int threads = 256;

// Kernels may have 4 KiB of parameters on every chip.
template <int Most>
struct parameters {
  gemm_epilogue epilogues[Most];
};
static_assert(sizeof(parameters<most_parameter_epilogues>) <= 4096);

// A block has a part of a column; blockIdx.z is the GEMM's number, and its items' columns follow each other.
template <class T, int Most>
__global__ void end_kernel(const __grid_constant__ parameters<Most> all) {
  using ops = arithmetic<T>;
  const gemm_epilogue &p = all.epilogues[blockIdx.z];
  for (std::int64_t column = blockIdx.y; column < p.n * p.batch; column += gridDim.y) {
    const std::int64_t item = column / p.n, j = column % p.n;
    T *c = static_cast<T *>(p.c) + item * p.stride_c + j * p.ldc;
    const T *bias = static_cast<const T *>(p.bias) + (p.bias != nullptr ? item * p.stride_bias : 0);
    for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < p.m;
         i += std::int64_t(gridDim.x) * threads) {
      auto sum = ops::widened(c[i]);
      if (p.bias != nullptr) sum = ops::plus(sum, ops::widened(bias[p.bias_per_row ? i : j]));
      c[i] = ops::rounded(activated(sum, p.activation));
    }
  }
}

template <class T, int Most>
cudaError_t launch(const gemm_epilogue *epilogues, int count, cudaStream_t in) {
  parameters<Most> all;
  std::copy(epilogues, epilogues + count, all.epilogues);
  std::int64_t rows = 1, columns = 1;
  for (int i = 0; i < count; ++i) {
    rows = std::max(rows, epilogues[i].m);
    columns = std::max(columns, epilogues[i].n * epilogues[i].batch);
  }
  const dim3 grid(unsigned(std::min<std::int64_t>((rows + threads - 1) / threads, 1024)),
                  unsigned(std::min<std::int64_t>(columns, 8192)), unsigned(count));
  end_kernel<T, Most><<<grid, threads, 0, in>>>(all);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch(const gemm_epilogue *epilogues, int count, cudaStream_t in) {
  return count == 1 ? launch<T, 1>(epilogues, count, in) : launch<T, most_parameter_epilogues>(epilogues, count, in);
}

}  // namespace epilogue_cu

cudaError_t launch_epilogues(const gemm_epilogue *epilogues, int count, sg_dtype type, cudaStream_t in) noexcept {
  switch (type) {
    case SG_DTYPE_F64: return launch<double>(epilogues, count, in);
    case SG_DTYPE_F32: return launch<float>(epilogues, count, in);
    case SG_DTYPE_C64: return launch<complex32>(epilogues, count, in);
    case SG_DTYPE_C128: return launch<complex64>(epilogues, count, in);
    case SG_DTYPE_I32: return launch<std::int32_t>(epilogues, count, in);
    default: return cudaErrorNotSupported;  // a short C must not be rounded before its epilogue
  }
}

}  // namespace sg::cuda
