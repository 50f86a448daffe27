// SPDX-License-Identifier: Apache-2.0
// C = activation(alpha * A + beta * C), in C's accumulator.
#include "axpby.hpp"

#include <cstdint>

#include "arithmetic.cuh"

namespace sg::cuda {
namespace {

constexpr int threads = 256;

template <class T>
__global__ void axpby_kernel(sg_backend_axpby what, bool reads_c) {
  using ops = arithmetic<T>;
  using sum = typename ops::sum;
  auto *c = static_cast<T *>(what.c);
  const auto *a = static_cast<const T *>(what.a);
  for (std::int64_t j = blockIdx.y; j < what.n; j += gridDim.y)
    for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < what.m;
         i += std::int64_t(gridDim.x) * threads) {
      T &out = c[i + j * what.ldc];
      sum total{};
      if (reads_c) total = ops::scaled(what.beta, out);
      if (a != nullptr) {
        const sum addend = ops::scaled(what.alpha, a[i + j * what.lda]);
        total = reads_c ? ops::plus(total, addend) : addend;
      }
      out = ops::rounded(activated(total, what.activation));
    }
}

template <class T>
cudaError_t launch(const sg_backend_axpby &what, cudaStream_t in, bool reads_c) {
  const auto blocks = [](std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); };
  const dim3 grid(blocks((what.m + threads - 1) / threads, 1024), blocks(what.n, 4096));
  axpby_kernel<T><<<grid, threads, 0, in>>>(what, reads_c);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_axpby(const sg_backend_axpby &what, cudaStream_t in) noexcept {
  const bool is_complex = what.type == SG_DTYPE_C64 || what.type == SG_DTYPE_C128;
  const bool reads_c = what.beta.re != 0 || (is_complex && what.beta.im != 0);
  switch (what.type) {
    case SG_DTYPE_F64: return launch<double>(what, in, reads_c);
    case SG_DTYPE_F32: return launch<float>(what, in, reads_c);
    case SG_DTYPE_C64: return launch<complex32>(what, in, reads_c);
    case SG_DTYPE_C128: return launch<complex64>(what, in, reads_c);
    case SG_DTYPE_F16: return launch<__half>(what, in, reads_c);
    case SG_DTYPE_BF16: return launch<__nv_bfloat16>(what, in, reads_c);
    case SG_DTYPE_I32: return launch<std::int32_t>(what, in, reads_c);
    case SG_DTYPE_I8:
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: break;
  }
  return cudaErrorNotSupported;
}

}  // namespace sg::cuda
