// SPDX-License-Identifier: Apache-2.0
// Operations on rows: a row belongs to a warp or a block, which keeps it in registers if it fits, or, if its elements
// are apart, to some threads of a block that serves neighbouring rows.
//
// An algorithm is a struct with `limit(i, cols)`, the number of columns of row i that it uses, and `run(row, i)`. A row
// has each(f), which calls f(value) for the thread's own elements; combined(value, plus), over its threads; and
// write(f), which calls f.load<count>(col) and then f(v, value) for elements col + v. Where `keeps` is true, a change
// of `value` in each stays. Elements from the limit on become 0.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arithmetic.cuh"
#include "pack.cuh"

namespace sg::cuda {

template <class Real>
__device__ Real from_lane(Real value, int distance) {
  if constexpr (std::is_arithmetic_v<Real>)
    return __shfl_xor_sync(0xffffffffu, value, distance);
  else
    return {from_lane(value.first, distance), from_lane(value.second, distance)};
}

// Of numbers, or of pairs of them.
template <class Real, class Plus>
__device__ Real combined_in_warp(Real value, Plus plus) {
  for (int distance = 16; distance > 0; distance /= 2) value = plus(value, from_lane(value, distance));
  return value;
}

// Over the threads of a row: a warp, or the block.
template <int threads, class Real, class Plus>
__device__ Real combined_over(Real value, Plus plus) {
  value = combined_in_warp(value, plus);
  if (threads == 32) return value;
  __shared__ Real of_warps[32];
  constexpr int warps = threads / 32;
  __syncthreads();  // the results of the previous call have been read
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  Real total = of_warps[threadIdx.x % warps];
#pragma unroll
  for (int distance = warps / 2; distance > 0; distance /= 2) total = plus(total, from_lane(total, distance));
  return total;
}

// Elements from the last address that is aligned to `count` of them to x.
template <int count, class T>
__device__ int shift_of(const T *x) {
  return int(reinterpret_cast<std::uintptr_t>(x) / sizeof(T) % count);
}

// Elements of a matrix's memory from x + col on: also those around a row, which are not used; not those outside of
// [begin, end).
template <int count, class T>
__device__ pack<T, count> load_around(const T *at, const T *begin, const T *end) {
  if (at >= begin && at + count <= end) return load_pack<count>(at);
  pack<T, count> made;
#pragma unroll
  for (int v = 0; v < count; ++v)
    if (at + v >= begin && at + v < end) made.at[v] = at[v];
  return made;
}
// To those of elements col to col + count that are in a row of `cols`.
template <int count, class T, class Index>
__device__ void store_inside(T *y, Index col, Index cols, const pack<T, count> &values) {
  if (col >= 0 && col + count <= cols) return store_pack(y + col, values);
#pragma unroll
  for (int v = 0; v < count; ++v)
    if (col + v >= 0 && col + v < cols) y[col + v] = values.at[v];
}

// A contiguous row in registers: `held` elements of each thread, read `count` at a time.
template <class T, class Out, int count, int threads, int held, bool shifted = false>
struct held_row {
  using element = T;
  using out_element = Out;
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  static constexpr bool keeps = true;

  const T *x, *begin, *end;  // the row, and the matrix's memory
  Out *y;
  std::int64_t cols, limit;
  int thread;
  real values[held];

  __device__ int column(int chunk) const {
    return (chunk * threads + thread) * count - (shifted ? shift_of<count>(x) : 0);
  }
  __device__ void load() {
#pragma unroll
    for (int chunk = 0; chunk < held / count; ++chunk)
      if (column(chunk) < int(limit)) {
        const pack<T, count> from =
            shifted ? load_around<count>(x + column(chunk), begin, end) : load_pack<count>(x + column(chunk));
#pragma unroll
        for (int v = 0; v < count; ++v) values[chunk * count + v] = ops::widened(from.at[v]);
      }
  }
  // Whole packs are not checked element by element.
  template <class F>
  __device__ void each(F f) {
#pragma unroll
    for (int chunk = 0; chunk < held / count; ++chunk) {
      const int left = int(limit) - column(chunk), before = shifted ? -column(chunk) : 0;
      if (left >= count && before <= 0) {
#pragma unroll
        for (int v = 0; v < count; ++v) f(values[chunk * count + v]);
      } else if (count > 1) {
#pragma unroll
        for (int v = 0; v < count; ++v)
          if (v < left && v >= before) f(values[chunk * count + v]);
      }
    }
  }
  template <class Plus>
  __device__ real combined(real value, Plus plus) const {
    return combined_over<threads>(value, plus);
  }
  template <class F>
  __device__ void write(F f) const {
#pragma unroll
    for (int chunk = 0; chunk < held / count; ++chunk)
      if (column(chunk) < int(cols)) {
        const int left = int(limit) - column(chunk);
        pack<Out, count> out;
        f.template load<count>(column(chunk));
#pragma unroll
        for (int v = 0; v < count; ++v)
          out.at[v] = arithmetic<Out>::rounded(v < left ? f(v, values[chunk * count + v]) : real(0));
        if constexpr (shifted)
          store_inside<count>(y, column(chunk), int(cols), out);
        else
          store_pack(y + column(chunk), out);
      }
  }
};

// A contiguous row of any length, which is read anew for each pass.
template <class T, class Out, int count, int threads, bool shifted = false>
struct streamed_row {
  using element = T;
  using out_element = Out;
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  static constexpr bool keeps = false;

  const T *x, *begin, *end;  // the row, and the matrix's memory
  Out *y;
  std::int64_t cols, limit;
  int thread;

  __device__ void load() {}
  __device__ std::int64_t first() const { return std::int64_t(thread) * count - (shifted ? shift_of<count>(x) : 0); }
  __device__ pack<T, count> from(std::int64_t col) const {
    return shifted ? load_around<count>(x + col, begin, end) : load_pack<count>(x + col);
  }
  template <class F>
  __device__ void each(F f) {
    for (std::int64_t col = first(); col < limit; col += threads * count) {
      const pack<T, count> values = from(col);
#pragma unroll
      for (int v = 0; v < count; ++v) {
        real value = ops::widened(values.at[v]);
        if (col + v < limit && (!shifted || col + v >= 0)) f(value);
      }
    }
  }
  template <class Plus>
  __device__ real combined(real value, Plus plus) const {
    return combined_over<threads>(value, plus);
  }
  template <class F>
  __device__ void write(F f) const {
    for (std::int64_t col = first(); col < cols; col += threads * count) {
      const pack<T, count> values = from(col);
      pack<Out, count> out;
      f.template load<count>(col);
#pragma unroll
      for (int v = 0; v < count; ++v)
        out.at[v] = arithmetic<Out>::rounded(col + v < limit ? f(v, ops::widened(values.at[v])) : real(0));
      if constexpr (shifted)
        store_inside<count>(y, col, cols, out);
      else
        store_pack(y + col, out);
    }
  }
};

// A row whose elements are apart, beside its neighbours: 32 rows by 8 threads for each.
template <class T>
struct apart_row {
  using element = T;
  using out_element = T;
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  static constexpr bool keeps = false;
  static constexpr int neighbours = 32, threads = 8;

  const T *x;
  T *y;
  std::int64_t x_col, y_col, cols, limit;

  template <class F>
  __device__ void each(F f) {
    for (std::int64_t col = threadIdx.y; col < limit; col += threads) {
      real value = ops::widened(x[col * x_col]);
      f(value);
    }
  }
  template <class Plus>
  __device__ real combined(real value, Plus plus) const {
    __shared__ real of_threads[threads][neighbours + 1];
    __syncthreads();
    of_threads[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    real total = of_threads[0][threadIdx.x];
    for (int i = 1; i < threads; ++i) total = plus(total, of_threads[i][threadIdx.x]);
    return total;
  }
  template <class F>
  __device__ void write(F f) const {
    for (std::int64_t col = threadIdx.y; col < cols; col += threads) {
      f.template load<1>(col);
      y[col * y_col] = ops::rounded(col < limit ? f(0, ops::widened(x[col * x_col])) : real(0));
    }
  }
};

constexpr int block_threads = 256;

// Rows in turn for each group of `threads` threads, of `block` in a block.
template <class Row, int threads, int block, class Algorithm>
__global__ void __launch_bounds__(block) rows_kernel(row_operands p, Algorithm algorithm) {
  const int rows_of_block = block / threads;
  const int group = int(threadIdx.x) / threads;
  for (std::int64_t i = std::int64_t(blockIdx.x) * rows_of_block + group; i < p.rows;
       i += std::int64_t(gridDim.x) * rows_of_block) {
    Row row;
    row.begin = static_cast<const typename Row::element *>(p.x);
    row.end = row.begin + (p.rows - 1) * p.x_row + p.cols;
    row.x = row.begin + i * p.x_row;
    row.y = static_cast<typename Row::out_element *>(p.y) + i * p.y_row;
    row.cols = p.cols;
    row.limit = algorithm.limit(i, p.cols);
    row.thread = int(threadIdx.x) % threads;
    row.load();
    algorithm.run(row, i);
  }
}

template <class T, class Algorithm>
__global__ void __launch_bounds__(block_threads) apart_rows_kernel(row_operands p, Algorithm algorithm) {
  using row_type = apart_row<T>;
  for (std::int64_t first = std::int64_t(blockIdx.x) * row_type::neighbours; first < p.rows;
       first += std::int64_t(gridDim.x) * row_type::neighbours) {
    const std::int64_t i = first + threadIdx.x;
    const bool exists = i < p.rows;  // a thread without a row takes part in the barriers
    row_type row;
    row.x = static_cast<const T *>(p.x) + i * p.x_row;
    row.y = static_cast<T *>(p.y) + i * p.y_row;
    row.x_col = p.x_col;
    row.y_col = p.y_col;
    row.cols = exists ? p.cols : 0;
    row.limit = exists ? algorithm.limit(i, p.cols) : 0;
    algorithm.run(row, i);
  }
}

inline unsigned blocks_for(std::int64_t wanted) { return unsigned(wanted < (1 << 20) ? wanted : 1 << 20); }

template <class Row, int threads, int block, class Algorithm>
cudaError_t launch_rows_of(const row_operands &p, const Algorithm &algorithm, cudaStream_t in) {
  constexpr int rows_of_block = block / threads;
  rows_kernel<Row, threads, block>
      <<<blocks_for((p.rows + rows_of_block - 1) / rows_of_block), block, 0, in>>>(p, algorithm);
  return cudaGetLastError();
}

// Many rows have a warp each, and need no barriers; few have a block each, so that more multiprocessors take part. Rows
// that cannot be read in packs have fewer kernels.
template <class T, class Out, int count, bool shifted, class Algorithm>
cudaError_t launch_contiguous(const row_operands &p, const Algorithm &algorithm, cudaStream_t in) {
  constexpr int block = block_threads, warp = 32, most = 1024;
  constexpr std::int64_t many_rows = 512;
  const std::int64_t cols = p.cols + (shifted ? count - 1 : 0);
  const auto in_warps = [&](auto held) {
    return launch_rows_of<held_row<T, Out, count, warp, held, shifted>, warp, block>(p, algorithm, in);
  };
  const auto in_blocks = [&](auto held) {
    return launch_rows_of<held_row<T, Out, count, block, held, shifted>, block, block>(p, algorithm, in);
  };
  if (cols <= warp * 8) return in_warps(constant<8>());
  if constexpr (count > 1) {
    if (cols <= warp * 16 && p.rows > many_rows) return in_warps(constant<16>());
    if (cols <= warp * 32 && p.rows > many_rows) return in_warps(constant<32>());
    if constexpr (sizeof(T) == 2)
      if (cols <= warp * 64 && p.rows > 2 * many_rows) return in_warps(constant<64>());
    if (cols <= block * 8) return in_blocks(constant<8>());
    if (cols <= block * 16) return in_blocks(constant<16>());
    if (cols > block * 32 && p.rows <= many_rows)
      return launch_rows_of<streamed_row<T, Out, count, most, shifted>, most, most>(p, algorithm, in);
  }
  if (cols <= warp * 32 && p.rows > many_rows) return in_warps(constant<32>());
  if (count == 1 && cols <= block * 8) return in_blocks(constant<8>());
  if (count == 1 && cols <= most * 8 && p.rows <= 2 * many_rows)
    return launch_rows_of<held_row<T, Out, count, most, 8>, most, most>(p, algorithm, in);
  if (cols <= warp * 32) return in_warps(constant<32>());
  if (cols <= block * 32) return in_blocks(constant<32>());
  return launch_rows_of<streamed_row<T, Out, count, block, shifted>, block, block>(p, algorithm, in);
}

// Whether X and Y have the same place in packs in each row.
template <class T>
bool shift_alike(const row_operands &p) {
  const auto x = reinterpret_cast<std::uintptr_t>(p.x), y = reinterpret_cast<std::uintptr_t>(p.y);
  return x % sizeof(T) == 0 && (x - y) % 16 == 0 && (p.x_row - p.y_row) * std::int64_t(sizeof(T)) % 16 == 0;
}

// `vectors`: those that the algorithm reads by packs. Rows of Out, if that differs from T, are contiguous.
template <class T, class Out = T, class Algorithm>
cudaError_t launch_rows(const row_operands &p, const Algorithm &algorithm, std::initializer_list<const void *> vectors,
                        cudaStream_t in) {
  if (p.cols > 1 && (p.x_col != 1 || p.y_col != 1)) {
    if (sizeof(T) != sizeof(Out)) return cudaErrorNotSupported;
    const dim3 block(apart_row<T>::neighbours, apart_row<T>::threads);
    const unsigned grid = blocks_for((p.rows + block.x - 1) / block.x);
    apart_rows_kernel<T><<<grid, block, 0, in>>>(p, algorithm);
    return cudaGetLastError();
  }
  constexpr int count = whole_pack<T>;
  const bool in_packs = pack_of(p, sizeof(T), sizeof(Out), vectors) == count;
  if (in_packs) return launch_contiguous<T, Out, count, false>(p, algorithm, in);
  // Rows of few elements gain nothing.
  if constexpr (!Algorithm::reads_vectors && sizeof(T) == 2 && sizeof(Out) == 2)
    if (p.cols >= 128 && shift_alike<T>(p)) return launch_contiguous<T, Out, count, true>(p, algorithm, in);
  return launch_contiguous<T, Out, 1, false>(p, algorithm, in);
}

}  // namespace sg::cuda
