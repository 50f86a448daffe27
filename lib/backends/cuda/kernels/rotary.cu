// SPDX-License-Identifier: Apache-2.0
// Rotary embedding: a thread has a pair of a row, or an element that is copied, in each head.
#include <cmath>
#include <cstdint>

#include "arithmetic.cuh"
#include "layers.hpp"

namespace sg::cuda {
inline namespace rotary_cu {

constexpr int threads = 256;

// The angle is reduced in f64: at high positions f32 has no bits left below a turn.
inline __device__ void rotation_of(double angle, float &c, float &s) {
  constexpr double turn = 6.283185307179586;
  sincosf(float(angle - turn * rint(angle / turn)), &s, &c);
}
inline __device__ void rotation_of(double angle, double &c, double &s) { sincos(angle, &s, &c); }

template <class T, class Table>
__global__ void rotary_kernel(sg_backend_rotary what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const std::int64_t half = what.rotated_size / 2, of_row = what.head_size - half;
  const bool halves = what.pairs == SG_ROTARY_HALVES;
  for (std::int64_t at = std::int64_t(blockIdx.x) * threads + threadIdx.x; at < what.rows * of_row;
       at += std::int64_t(gridDim.x) * threads) {
    const std::int64_t i = at / of_row, j = at % of_row;
    const T *x = static_cast<const T *>(what.x) + i * what.x_row;
    T *y = static_cast<T *>(what.y) + i * what.y_row;
    const std::int64_t step = std::int64_t(gridDim.y) * what.head_size;
    if (j >= half) {
      for (std::int64_t col = blockIdx.y * what.head_size + half + j; col < what.cols; col += step) y[col] = x[col];
      continue;
    }
    const std::int64_t p = what.first_position + (what.first_row + i) % what.sequence_length;
    real c, s;
    if (what.cos != nullptr) {
      c = arithmetic<Table>::widened(static_cast<const Table *>(what.cos)[p * what.cos_row + j]);
      s = arithmetic<Table>::widened(static_cast<const Table *>(what.sin)[p * what.sin_row + j]);
    } else {
      rotation_of(double(p) * pow(what.theta, -double(2 * j) / double(what.rotated_size)), c, s);
    }
    if (what.inverse) s = -s;
    const std::int64_t first = halves ? j : 2 * j, to_second = halves ? half : 1;
    for (std::int64_t col = blockIdx.y * what.head_size + first; col < what.cols; col += step) {
      const real a = ops::widened(x[col]), b = ops::widened(x[col + to_second]);
      y[col] = ops::rounded(a * c - b * s);
      y[col + to_second] = ops::rounded(a * s + b * c);
    }
  }
}

template <class T, class Table>
cudaError_t launch_tables(const sg_backend_rotary &what, cudaStream_t in) {
  const std::int64_t elements = what.rows * (what.head_size - what.rotated_size / 2);
  const std::int64_t wanted = (elements + threads - 1) / threads, heads = what.cols / what.head_size;
  // Threads compute their cosine and sine once for several heads, unless the device would have too few of them.
  const std::int64_t most = 1 << 16, enough = 1024;
  const std::int64_t beside = wanted < enough ? enough / wanted : 1;
  const dim3 grid(unsigned(wanted < most ? wanted : most), unsigned(heads < beside ? heads : beside));
  rotary_kernel<T, Table><<<grid, threads, 0, in>>>(what);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_short(const sg_backend_rotary &what, cudaStream_t in) {
  return what.table_type == SG_DTYPE_F32 ? launch_tables<T, float>(what, in) : launch_tables<T, T>(what, in);
}

}  // namespace rotary_cu

cudaError_t launch_rotary(const sg_backend_rotary &what, cudaStream_t in) noexcept {
  switch (what.type) {
    case SG_DTYPE_F64: return launch_tables<double, double>(what, in);
    case SG_DTYPE_F32: return launch_tables<float, float>(what, in);
    case SG_DTYPE_F16: return launch_short<__half>(what, in);
    case SG_DTYPE_BF16: return launch_short<__nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
