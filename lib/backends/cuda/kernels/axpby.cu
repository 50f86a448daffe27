// SPDX-License-Identifier: Apache-2.0
// C = activation(alpha * A + beta * C), in C's accumulator.
#include <cstdint>

#include "arithmetic.cuh"
#include "layers.hpp"

namespace sg::cuda {
inline namespace axpby_cu {

constexpr int threads = 256;

template <class T>
__global__ void axpby_kernel(sg_backend_axpby what, bool reads_c, bool alpha_is_one, bool beta_is_one) {
  using ops = arithmetic<T>;
  using sum = typename ops::sum;
  auto *c = static_cast<T *>(what.c);
  const auto *a = static_cast<const T *>(what.a);
  for (std::int64_t j = blockIdx.y; j < what.n; j += gridDim.y)
    for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < what.m;
         i += std::int64_t(gridDim.x) * threads) {
      T &out = c[i + j * what.ldc];
      sum total{};
      // Skips a factor of 1: multiplying would change complex infinities.
      if (reads_c) total = beta_is_one ? ops::widened(out) : ops::scaled(what.beta, out);
      if (a != nullptr) {
        const T x = a[i + j * what.lda];
        const sum addend = alpha_is_one ? ops::widened(x) : ops::scaled(what.alpha, x);
        total = reads_c ? ops::plus(total, addend) : addend;
      }
      out = ops::rounded(activated(total, what.activation));
    }
}

template <class T>
cudaError_t launch(const sg_backend_axpby &what, cudaStream_t in, bool is_complex) {
  const auto is_one = [&](const sg_scalar &s) { return s.re == 1 && (!is_complex || s.im == 0); };
  const bool reads_c = what.beta.re != 0 || (is_complex && what.beta.im != 0);
  const auto blocks = [](std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); };
  const dim3 grid(blocks((what.m + threads - 1) / threads, 1024), blocks(what.n, 4096));
  axpby_kernel<T><<<grid, threads, 0, in>>>(what, reads_c, is_one(what.alpha), is_one(what.beta));
  return cudaGetLastError();
}

}  // namespace axpby_cu

cudaError_t launch_axpby(const sg_backend_axpby &what, cudaStream_t in) noexcept {
  switch (what.type) {
    case SG_DTYPE_F64: return launch<double>(what, in, false);
    case SG_DTYPE_F32: return launch<float>(what, in, false);
    case SG_DTYPE_C64: return launch<complex32>(what, in, true);
    case SG_DTYPE_C128: return launch<complex64>(what, in, true);
    case SG_DTYPE_F16: return launch<__half>(what, in, false);
    case SG_DTYPE_BF16: return launch<__nv_bfloat16>(what, in, false);
    case SG_DTYPE_I32: return launch<std::int32_t>(what, in, false);
    case SG_DTYPE_I8:
    case SG_DTYPE_F8_E4M3:
    case SG_DTYPE_F8_E5M2: break;
  }
  return cudaErrorNotSupported;
}

}  // namespace sg::cuda
