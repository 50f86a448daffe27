// SPDX-License-Identifier: Apache-2.0
// C = activation(beta * C + the parts + bias), added in order in C's accumulator.
#include "arithmetic.cuh"
#include "kernels.hpp"

namespace sg::cuda {
namespace {

template <class T, class Part>
__global__ void reduce_kernel(sg_backend_reduce what, bool reads_c) {
  using ops = arithmetic<T>;
  using sum = typename ops::sum;
  auto *c = static_cast<T *>(what.c);
  const auto *parts = static_cast<const Part *>(what.parts);
  const auto widened = [](Part x) { return arithmetic<Part>::widened(x); };
  for (std::int64_t j = blockIdx.y; j < what.n; j += gridDim.y)
    for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < what.m;
         i += std::int64_t(gridDim.x) * blockDim.x) {
      T &out = c[i + j * what.ldc];
      const Part *part = parts + i + j * what.part_ld;
      std::int64_t next = 0;
      sum total;
      if (reads_c) {
        total = ops::scaled(what.beta, out);
      } else if (what.parts_count > 0) {
        total = widened(part[0]);
        next = 1;
      } else {
        total = sum{};
      }
      for (; next < what.parts_count; ++next) total = ops::plus(total, widened(part[next * what.part_stride]));
      if (what.bias != nullptr)
        total = ops::plus(total, ops::widened(static_cast<const T *>(what.bias)[what.bias_per_row ? i : j]));
      out = ops::rounded(activated(total, what.activation));
    }
}

template <class T, class Part = typename arithmetic<T>::sum>
cudaError_t launch(const sg_backend_reduce &what, cudaStream_t in, bool reads_c) {
  constexpr int threads = 256;
  const auto blocks = [](std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); };
  const dim3 grid(blocks((what.m + threads - 1) / threads, 1024), blocks(what.n, 4096));
  reduce_kernel<T, Part><<<grid, threads, 0, in>>>(what, reads_c);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_reduce(const sg_backend_reduce &what, cudaStream_t in) noexcept {
  const bool reads_c = what.beta.re != 0 || (is_complex(what.out_type) && what.beta.im != 0);
  switch (what.out_type) {
    case SG_DTYPE_F64: return launch<double>(what, in, reads_c);
    case SG_DTYPE_F32:
      if (what.part_type == SG_DTYPE_F16) return launch<float, __half>(what, in, reads_c);
      if (what.part_type == SG_DTYPE_BF16) return launch<float, __nv_bfloat16>(what, in, reads_c);
      return launch<float>(what, in, reads_c);
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
