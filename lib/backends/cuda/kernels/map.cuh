// SPDX-License-Identifier: Apache-2.0
// C = f(A) or f(A, B), element by element. `f(c, a, b)` computes arrays of elements, which are widened to the type of
// sums: what f decides for all elements, it decides once an array.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arithmetic.cuh"
#include "pack.cuh"

namespace sg::cuda {

// Columns of m elements. B may be NULL: f then reads A twice.
struct map_operands {
  std::int64_t m, n;
  const void *a;
  std::int64_t lda;
  const void *b;
  std::int64_t ldb;
  void *c;
  std::int64_t ldc;
};

constexpr int map_threads = 256;

// A thread reads two packs of `count` neighbours of a column before it writes; fewer elements at the column's end.
template <class T, int count, class Function>
__global__ void map_kernel(map_operands p, Function f) {
  using ops = arithmetic<T>;
  using real = typename ops::sum;
  constexpr int packs = 2;
  constexpr std::int64_t step = std::int64_t(map_threads) * count;
  for (std::int64_t j = blockIdx.y; j < p.n; j += gridDim.y) {
    const T *a = static_cast<const T *>(p.a) + j * p.lda;
    const T *b = p.b == nullptr ? nullptr : static_cast<const T *>(p.b) + j * p.ldb;
    T *c = static_cast<T *>(p.c) + j * p.ldc;
    const auto compute = [&](const T *x, const T *y, T *out, auto elements) {
      constexpr int all = decltype(elements)::value;
      real first[all], second[all], result[all];
#pragma unroll
      for (int v = 0; v < all; ++v) first[v] = ops::widened(x[v]), second[v] = ops::widened(y[v]);
      f(result, first, second);
#pragma unroll
      for (int v = 0; v < all; ++v) out[v] = ops::rounded(result[v]);
    };
    for (std::int64_t i = std::int64_t(blockIdx.x) * packs * step + threadIdx.x * count; i < p.m;
         i += std::int64_t(gridDim.x) * packs * step) {
      pack<T, count> x[packs], y[packs];
#pragma unroll
      for (int k = 0; k < packs; ++k)
        if (i + k * step + count <= p.m) {
          x[k] = load_pack<count>(a + i + k * step);
          y[k] = b == nullptr ? x[k] : load_pack<count>(b + i + k * step);
        }
#pragma unroll
      for (int k = 0; k < packs; ++k) {
        const std::int64_t first = i + k * step;
        if (first + count <= p.m) {
          compute(x[k].at, y[k].at, x[k].at, constant<count>());
          store_pack(c + first, x[k]);
        } else {
          for (std::int64_t at = first; at < p.m; ++at)
            compute(a + at, b == nullptr ? a + at : b + at, c + at, constant<1>());
        }
      }
    }
  }
}

template <class T, int count, class Function>
cudaError_t launch_map(const map_operands &p, const Function &f, cudaStream_t in) {
  // With few elements the time is that of one thread's, so each gets few.
  constexpr std::int64_t few = 1 << 17;
  if constexpr (count > 1)
    if (p.m * p.n <= few) return launch_map<T, 1>(p, f, in);
  const auto blocks = [](std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); };
  const std::int64_t run = 2 * std::int64_t(map_threads) * count;
  const dim3 grid(blocks((p.m + run - 1) / run, 1 << 16), blocks(p.n, 4096));
  map_kernel<T, count><<<grid, map_threads, 0, in>>>(p, f);
  return cudaGetLastError();
}

}  // namespace sg::cuda
