// SPDX-License-Identifier: Apache-2.0
// Y = min(max(X, low), high), or dX = dY where low <= X <= high.
#include <cstdint>

#include "arithmetic.cuh"
#include "clamp.hpp"
#include "layers.hpp"
#include "pack.cuh"

namespace sg::cuda {
namespace {

constexpr int threads = 256;

// `dy` is not read without a gradient. A NaN is in no order, so it stays, and its gradient is 0.
template <class Real>
__device__ Real clamped(Real x, Real dy, bool is_gradient, Real low, Real high) {
  if (is_gradient) return low <= x && x <= high ? dy : Real(0);
  const Real raised = x < low ? low : x;
  return raised > high ? high : raised;
}

// A thread computes `count` neighbours of a column at a time; fewer at its end.
template <class T, int count>
__global__ void clamp_kernel(sg_backend_clamp what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const bool is_gradient = what.dy != nullptr;
  const real low = real(what.low), high = real(what.high);
  for (std::int64_t j = blockIdx.y; j < what.n; j += gridDim.y) {
    const T *x = static_cast<const T *>(what.x) + j * what.ldx;
    const T *dy = is_gradient ? static_cast<const T *>(what.dy) + j * what.lddy : x;
    T *y = static_cast<T *>(what.y) + j * what.ldy;
    const auto value = [&](T of, T gradient) {
      return ops::rounded(clamped(ops::widened(of), ops::widened(gradient), is_gradient, low, high));
    };
    for (std::int64_t i = (std::int64_t(blockIdx.x) * threads + threadIdx.x) * count; i < what.m;
         i += std::int64_t(gridDim.x) * threads * count) {
      if (i + count <= what.m) {
        const pack<T, count> of = load_pack<count>(x + i), gradient = is_gradient ? load_pack<count>(dy + i) : of;
        pack<T, count> out;
#pragma unroll
        for (int v = 0; v < count; ++v) out.at[v] = value(of.at[v], gradient.at[v]);
        store_pack(y + i, out);
      } else {
        for (std::int64_t at = i; at < what.m; ++at) y[at] = value(x[at], dy[at]);
      }
    }
  }
}

template <class T, int count>
cudaError_t launch_packs(const sg_backend_clamp &what, cudaStream_t in) {
  const auto blocks = [](std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); };
  const std::int64_t run = std::int64_t(threads) * count;
  const dim3 grid(blocks((what.m + run - 1) / run, 1 << 16), blocks(what.n, 4096));
  clamp_kernel<T, count><<<grid, threads, 0, in>>>(what);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_typed(const sg_backend_clamp &given, cudaStream_t in) {
  const sg_backend_clamp what = as_one_column(given);
  return pack_of(what) == whole_pack<T> ? launch_packs<T, whole_pack<T>>(what, in) : launch_packs<T, 1>(what, in);
}

}  // namespace

cudaError_t launch_clamp(const sg_backend_clamp &what, cudaStream_t in) noexcept {
  switch (what.type) {
    case SG_DTYPE_F64: return launch_typed<double>(what, in);
    case SG_DTYPE_F32: return launch_typed<float>(what, in);
    case SG_DTYPE_F16: return launch_typed<__half>(what, in);
    case SG_DTYPE_BF16: return launch_typed<__nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
