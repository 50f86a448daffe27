// SPDX-License-Identifier: Apache-2.0
// One step of a recurrent cell, and its gradients: a thread has all gates of some values.
#include <cmath>
#include <cstdint>

#include "arithmetic.cuh"
#include "layers.hpp"

namespace sg::cuda {
inline namespace cell_cu {

constexpr int threads = 128;

inline __device__ float hyperbolic(float x) { return tanhf(x); }
inline __device__ double hyperbolic(double x) { return tanh(x); }

template <class Real>
__device__ Real sigmoid(Real x) {
  const Real e = exponential(x < 0 ? x : -x);
  return (x < 0 ? e : Real(1)) / (1 + e);
}

template <class T>
__global__ void __launch_bounds__(threads) cell_kernel(sg_backend_cell what) {
  using real = typename arithmetic<T>::sum;
  for (std::int64_t j = blockIdx.y; j < what.batch; j += gridDim.y) {
    real *const row = static_cast<real *>(what.row) + j * what.row_ld;
    real *const next = what.next == nullptr ? nullptr : static_cast<real *>(what.next) + j * what.next_ld;
    T *const y = static_cast<T *>(what.y) + j * what.y_ld;
    for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < what.hidden;
         i += std::int64_t(gridDim.x) * threads) {
      real *const first = row + what.gates[0] * what.hidden + i, *const second = row + what.gates[1] * what.hidden + i;
      real *const third = row + what.gates[2] * what.hidden + i, *const fourth = row + what.gates[3] * what.hidden + i;
      const real before = row[4 * what.hidden + i];
      real after, h;
      if (what.step == SG_BACKEND_CELL_RESET) {
        after = h = sigmoid(*second) * before;
      } else if (what.cell == SG_CELL_LSTM) {
        const real in = sigmoid(*first), forget = sigmoid(*second), g = hyperbolic(*third), out = sigmoid(*fourth);
        after = forget * before + in * g;
        h = out * hyperbolic(after);
        if (what.keeps) *first = in, *second = forget, *third = g, *fourth = out;
      } else {
        const real reset = sigmoid(*second), z = sigmoid(*third);
        const real n = hyperbolic(*first + (what.cell == SG_CELL_GRU ? reset : real(1)) * *fourth);
        after = h = (1 - z) * n + z * before;
        if (what.keeps) *first = n, *second = reset, *third = z;
      }
      if (next != nullptr) next[i] = after;
      y[i] = arithmetic<T>::rounded(h);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(threads) cell_backward_kernel(sg_backend_cell_backward what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  for (std::int64_t j = blockIdx.y; j < what.batch; j += gridDim.y) {
    const real *const row = static_cast<const real *>(what.row) + j * what.row_ld;
    const real *const gradient = static_cast<const real *>(what.dh) + j * what.dh_ld;
    real *const dstate = what.dstate == nullptr ? nullptr : static_cast<real *>(what.dstate) + j * what.dstate_ld;
    T *const dgates = static_cast<T *>(what.dgates) + j * what.dgates_ld;
    for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < what.hidden;
         i += std::int64_t(gridDim.x) * threads) {
      const auto gate = [&](int index) { return row[what.gates[index] * what.hidden + i]; };
      const auto set = [&](int index, real value) {
        dgates[what.gates[index] * what.hidden + i] = ops::rounded(value);
      };
      const real before = row[4 * what.hidden + i], dh = gradient[i];
      if (what.cell == SG_CELL_LSTM) {
        const real in = gate(0), forget = gate(1), g = gate(2), out = gate(3);
        const real t = hyperbolic(forget * before + in * g), dc = dstate[i] + dh * out * (1 - t * t);
        set(0, dc * g * in * (1 - in));
        set(1, dc * before * forget * (1 - forget));
        set(2, dc * in * (1 - g * g));
        set(3, dh * t * out * (1 - out));
        dstate[i] = dc * forget;
      } else {
        const real n = gate(0), reset = gate(1), z = gate(2), dn = dh * (1 - z) * (1 - n * n);
        set(0, dn);
        set(1, dn * gate(3) * reset * (1 - reset));
        set(2, dh * (before - n) * z * (1 - z));
        set(3, dn * reset);
        if (dstate != nullptr) dstate[i] += dh * z;
      }
    }
  }
}

template <class Command>
dim3 grid_of(const Command &what) {
  const auto limited = [](std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); };
  return {limited((what.hidden + threads - 1) / threads, 1024), limited(what.batch, 4096)};
}

template <class T>
cudaError_t launch(const sg_backend_cell &what, cudaStream_t in) {
  cell_kernel<T><<<grid_of(what), threads, 0, in>>>(what);
  return cudaGetLastError();
}
template <class T>
cudaError_t launch(const sg_backend_cell_backward &what, cudaStream_t in) {
  cell_backward_kernel<T><<<grid_of(what), threads, 0, in>>>(what);
  return cudaGetLastError();
}

template <class Command>
cudaError_t launch_typed(const Command &what, cudaStream_t in) {
  switch (what.type) {
    case SG_DTYPE_F64: return launch<double>(what, in);
    case SG_DTYPE_F32: return launch<float>(what, in);
    case SG_DTYPE_F16: return launch<__half>(what, in);
    case SG_DTYPE_BF16: return launch<__nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace cell_cu

cudaError_t launch_cell(const sg_backend_cell &what, cudaStream_t in) noexcept { return launch_typed(what, in); }

cudaError_t launch_cell_backward(const sg_backend_cell_backward &what, cudaStream_t in) noexcept {
  return launch_typed(what, in);
}

}  // namespace sg::cuda
