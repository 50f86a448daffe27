// SPDX-License-Identifier: Apache-2.0
// Y = min(max(X, low), high), or dX = dY where low <= X <= high.
#include <cstdint>

#include "arithmetic.cuh"
#include "clamp.hpp"
#include "layers.hpp"
#include "map.cuh"

namespace sg::cuda {
inline namespace clamp_cu {

// B is dY, or X. A NaN is in no order, so it stays, and its gradient is 0.
template <class Limit>
struct clamped {
  bool is_gradient;
  Limit low, high;

  template <class Real, int count>
  __device__ void operator()(Real (&c)[count], const Real (&a)[count], const Real (&b)[count]) const {
#pragma unroll
    for (int v = 0; v < count; ++v) {
      const Real raised = a[v] < low ? low : a[v];
      c[v] = is_gradient ? (low <= a[v] && a[v] <= high ? b[v] : Real(0)) : raised > high ? high : raised;
    }
  }
};

template <class T>
cudaError_t launch_typed(const sg_backend_clamp &given, cudaStream_t in) {
  using real = typename arithmetic<T>::sum;
  const sg_backend_clamp what = as_one_column(given);
  const map_operands p{what.m, what.n, what.x, what.ldx, what.dy, what.lddy, what.y, what.ldy};
  const clamped<real> f{what.dy != nullptr, real(what.low), real(what.high)};
  constexpr int count = whole_pack<T>;
  return pack_of(what) == count ? launch_map<T, count>(p, f, in) : launch_map<T, 1>(p, f, in);
}

}  // namespace clamp_cu

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
