// SPDX-License-Identifier: Apache-2.0
// The gradient of a norm: a block of threads for each group of rows, of which each warp has some, or, if they are
// longer, all threads one after the other. Rows, and the sums of the group, are in registers if they fit.
#include <algorithm>
#include <cstdint>

#include "layer_types.cuh"
#include "layers.hpp"
#include "rows.cuh"

namespace sg::cuda {
inline namespace norm_backward_cu {

constexpr int most_warps = 8;          // with a row each
constexpr int most_row_threads = 512;  // of one row
constexpr std::int64_t columns_of_warp = 256;

// Two sums that are combined at once.
template <class Real>
struct two {
  Real first, second;
};
template <class Real>
__device__ two<Real> plus_two(two<Real> a, two<Real> b) {
  return {a.first + b.first, a.second + b.second};
}

// A row belongs to a warp, or (`whole_block`) to all threads. Columns of a thread: packs of `count`, one in `threads`
// packs.
template <class T, int count, bool whole_block, int held>
__global__ void __launch_bounds__(whole_block ? most_row_threads : most_warps * 32)
    norm_backward_kernel(sg_backend_norm_backward what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  constexpr int packs = held / count;
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ two<real> of_block[3][most_row_threads / 32];
  real *const of_warps = reinterpret_cast<real *>(shared);
  const int warps = int(blockDim.x) / 32;
  const int threads = whole_block ? int(blockDim.x) : 32;
  const int thread = whole_block ? int(threadIdx.x) : int(threadIdx.x) % 32;
  const int warp = whole_block ? 0 : int(threadIdx.x) / 32, rows_at_once = whole_block ? 1 : warps;
  const real number = real(what.cols);
  const auto column_of = [&](int k) { return (std::int64_t(k) * threads + thread) * count; };
  // Over the threads of a row. The three sums of a row take turns in of_block, so one barrier is enough: behind it all
  // threads have read the sum before.
  const auto combined = [&](int which, two<real> value) {
    value = combined_in_warp(value, plus_two<real>);
    if (!whole_block || warps == 1) return value;
    if (threadIdx.x % 32 == 0) of_block[which][threadIdx.x / 32] = value;
    __syncthreads();
    two<real> total = of_block[which][0];
    for (int i = 1; i < warps; ++i) total = plus_two(total, of_block[which][i]);
    return total;
  };
  const T *const gamma = static_cast<const T *>(what.gamma);
  const std::int64_t first = std::int64_t(blockIdx.x) * what.group_rows;
  const std::int64_t end = first + what.group_rows < what.rows ? first + what.group_rows : what.rows;
  real products[held] = {}, gradients[held] = {};
  for (std::int64_t i = first + warp; i < end; i += rows_at_once) {
    const T *const x = static_cast<const T *>(what.x) + i * what.x_row;
    const T *const dy = static_cast<const T *>(what.dy) + i * what.dy_row;
    T *const dx = static_cast<T *>(what.dx) + i * what.dx_row;
    pack<T, count> of_x[packs], of_dy[packs];
#pragma unroll
    for (int k = 0; k < packs; ++k)
      if (column_of(k) < what.cols) {
        of_x[k] = load_pack<count>(x + column_of(k));
        of_dy[k] = load_pack<count>(dy + column_of(k));
      }
    // f(k, v, value of X, value of dY) for the thread's elements.
    const auto each = [&](auto f) {
#pragma unroll
      for (int k = 0; k < packs; ++k)
        if (column_of(k) < what.cols)
#pragma unroll
          for (int v = 0; v < count; ++v) f(k, v, ops::widened(of_x[k].at[v]), ops::widened(of_dy[k].at[v]));
    };
    real mean = 0, rest = 0, squares = 0, of_gradient = 0, of_product = 0;
    if (what.kind == SG_NORM_LAYER) {
      each([&](int, int, real value, real) { mean += value; });
      mean = combined(0, {mean, 0}).first / number;
    }
    // The rounded mean is off by `rest`, which the squares of the differences from it have, too.
    each([&](int, int, real value, real) { rest += value - mean, squares += (value - mean) * (value - mean); });
    two<real> both = combined(1, {rest, squares});
    rest = what.kind == SG_NORM_LAYER ? both.first / number : real(0);
    // An infinite sum stays infinite, and a NaN a NaN.
    squares = both.second < real(INFINITY) ? both.second - number * rest * rest : both.second;
    const real factor = 1 / square_root((squares < 0 ? real(0) : squares) / number + real(what.epsilon));
    const auto scaled = [&](int k, int v, real gradient) {
      return gamma == nullptr ? gradient : gradient * ops::widened(gamma[column_of(k) + v]);
    };
    each([&](int k, int v, real value, real gradient) {
      const real g = scaled(k, v, gradient), h = (value - mean - rest) * factor;
      of_gradient += g, of_product += g * h;
      products[k * count + v] += gradient * h;
      gradients[k * count + v] += gradient;
    });
    both = combined(2, {of_gradient, of_product});
    of_gradient = what.kind == SG_NORM_LAYER ? both.first / number : real(0);
    of_product = both.second / number;
    // dX may be dY or X: a thread writes only elements that it alone has read.
    each([&](int k, int v, real value, real gradient) {
      const real h = (value - mean - rest) * factor;
      of_x[k].at[v] = ops::rounded(factor * (scaled(k, v, gradient) - of_gradient - h * of_product));
    });
#pragma unroll
    for (int k = 0; k < packs; ++k)
      if (column_of(k) < what.cols) store_pack(dx + column_of(k), of_x[k]);
  }
  const auto finish = [&](void *sums, std::int64_t pitch, const real(&of_thread)[held]) {
    if (sums == nullptr) return;
    real *const to = static_cast<real *>(sums) + blockIdx.x * pitch;
    if (rows_at_once > 1) __syncthreads();
#pragma unroll
    for (int k = 0; k < packs; ++k)
#pragma unroll
      for (int v = 0; v < count; ++v) {
        const std::int64_t column = column_of(k) + v;
        if (column >= what.cols) continue;
        if (rows_at_once == 1)
          to[column] = of_thread[k * count + v];
        else
          of_warps[warp * what.cols + column] = of_thread[k * count + v];
      }
    if (rows_at_once == 1) return;
    __syncthreads();
    for (std::int64_t column = threadIdx.x; column < what.cols; column += blockDim.x) {
      real sum = of_warps[column];
      for (int i = 1; i < rows_at_once; ++i) sum += of_warps[i * what.cols + column];
      to[column] = sum;
    }
  };
  finish(what.products, what.products_row, products);
  finish(what.dy_sums, what.dy_sums_row, gradients);
}

// Rows that do not fit in registers are read again for each sum.
template <class T>
__global__ void __launch_bounds__(block_threads) long_rows_kernel(sg_backend_norm_backward what) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  const T *gamma = static_cast<const T *>(what.gamma);
  const real count = real(what.cols);
  const auto plus = [](real a, real b) { return a + b; };
  const std::int64_t first = std::int64_t(blockIdx.x) * what.group_rows;
  const std::int64_t end = first + what.group_rows < what.rows ? first + what.group_rows : what.rows;
  for (std::int64_t i = first; i < end; ++i) {
    const T *x = static_cast<const T *>(what.x) + i * what.x_row,
            *dy = static_cast<const T *>(what.dy) + i * what.dy_row;
    T *dx = static_cast<T *>(what.dx) + i * what.dx_row;
    const auto each = [&](auto body) {
      for (std::int64_t j = threadIdx.x; j < what.cols; j += block_threads) body(j);
    };
    const auto scaled = [&](std::int64_t j) {
      const real gradient = ops::widened(dy[j]);
      return gamma == nullptr ? gradient : gradient * ops::widened(gamma[j]);
    };
    real mean = 0, rest = 0, squares = 0, of_gradient = 0, of_product = 0;
    if (what.kind == SG_NORM_LAYER) {
      each([&](std::int64_t j) { mean += ops::widened(x[j]); });
      mean = combined_over<block_threads>(mean, plus) / count;
      each([&](std::int64_t j) { rest += ops::widened(x[j]) - mean; });
      rest = combined_over<block_threads>(rest, plus) / count;
    }
    const auto centred = [&](std::int64_t j) { return ops::widened(x[j]) - mean - rest; };
    each([&](std::int64_t j) { squares += centred(j) * centred(j); });
    squares = combined_over<block_threads>(squares, plus);
    const real factor = 1 / square_root(squares / count + real(what.epsilon));
    each([&](std::int64_t j) {
      of_gradient += scaled(j);
      of_product += scaled(j) * (centred(j) * factor);
    });
    of_gradient = what.kind == SG_NORM_LAYER ? combined_over<block_threads>(of_gradient, plus) / count : real(0);
    of_product = combined_over<block_threads>(of_product, plus) / count;
    const auto add = [&](void *sums, std::int64_t pitch, std::int64_t j, real value) {
      if (sums == nullptr) return;
      real &to = static_cast<real *>(sums)[blockIdx.x * pitch + j];
      to = i == first ? value : to + value;
    };
    each([&](std::int64_t j) {
      const real h = centred(j) * factor, g = scaled(j), gradient = ops::widened(dy[j]);
      add(what.products, what.products_row, j, gradient * h);
      add(what.dy_sums, what.dy_sums_row, j, gradient);
      dx[j] = ops::rounded(factor * (g - of_gradient - h * of_product));
    });
  }
}

// All threads of a block for a row, as few as have its columns.
template <class T, int count, int held>
cudaError_t launch_whole(const sg_backend_norm_backward &what, unsigned groups, cudaStream_t in) {
  constexpr std::int64_t of_warp = 32 * held;
  const auto warps = unsigned((what.cols + of_warp - 1) / of_warp);
  norm_backward_kernel<T, count, true, held><<<groups, warps * 32, 0, in>>>(what);
  return cudaGetLastError();
}

template <class T, int count>
cudaError_t launch_held(const sg_backend_norm_backward &what, unsigned groups, cudaStream_t in) {
  using real = typename arithmetic<T>::sum;
  constexpr int few = 8 > count ? 8 : count, many = 16;
  if (what.cols <= columns_of_warp) {
    const int warps = int(std::min<std::int64_t>(most_warps, what.group_rows));
    const unsigned bytes = warps > 1 ? unsigned(warps * what.cols * sizeof(real)) : 0;
    norm_backward_kernel<T, count, false, few><<<groups, warps * 32, bytes, in>>>(what);
    return cudaGetLastError();
  }
  if (what.cols <= most_row_threads * few) return launch_whole<T, count, few>(what, groups, in);
  if (what.cols <= most_row_threads * many) return launch_whole<T, count, many>(what, groups, in);
  long_rows_kernel<T><<<groups, block_threads, 0, in>>>(what);
  return cudaGetLastError();
}

}  // namespace norm_backward_cu

cudaError_t launch_norm_backward(const sg_backend_norm_backward &what, cudaStream_t in) noexcept {
  sg_backend_norm_backward grouped = what;
  // Without sums only warps share a block.
  if (what.products == nullptr && what.dy_sums == nullptr)
    grouped.group_rows = what.cols <= columns_of_warp ? most_warps : 1;
  const std::int64_t groups = (grouped.rows + grouped.group_rows - 1) / grouped.group_rows;
  if (groups > INT32_MAX) return cudaErrorInvalidConfiguration;
  return with_layer_type(what.type, [&](auto element) {
    using T = typename decltype(element)::type;
    constexpr int count = whole_pack<T>;
    const row_operands of_x{what.rows, what.cols, what.x, what.x_row, 1, what.dx, what.dx_row, 1};
    const row_operands of_dy{what.rows, what.cols, what.dy, what.dy_row, 1, what.dx, what.dx_row, 1};
    const bool in_packs =
        pack_of(of_x, sizeof(T), sizeof(T), {}) == count && pack_of(of_dy, sizeof(T), sizeof(T), {}) == count;
    return in_packs ? launch_held<T, count>(grouped, unsigned(groups), in)
                    : launch_held<T, 1>(grouped, unsigned(groups), in);
  });
}

}  // namespace sg::cuda
