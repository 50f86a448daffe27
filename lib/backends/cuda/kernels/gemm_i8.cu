// SPDX-License-Identifier: Apache-2.0
// GEMMs of i8 whose operands cuBLAS does not support: a plain tiled kernel for any alignment, and packing for cuBLAS.
#include "kernels.hpp"

namespace sg::cuda {
inline namespace gemm_i8_cu {

constexpr int tile = 32;  // a block's piece of C, and the depth of a step
constexpr int rows_of_threads = 8;

struct operands {
  const std::int8_t *a, *b;
  std::int32_t *c;
  const void *const *a_array, *const *b_array;
  void *const *c_array;
  std::int64_t stride_a, stride_b, stride_c, first_item;
  std::int64_t m, n, k, lda, ldb, ldc;
  bool transposed_a, transposed_b;
  std::uint32_t alpha, beta;
};

__global__ void gemm_i8_kernel(operands x) {
  __shared__ std::int8_t of_a[tile][tile + 4], of_b[tile][tile + 4];  // [depth][row of C], [depth][column of C]
  const std::int64_t item = x.first_item + blockIdx.z;
  const auto *a = x.a_array ? static_cast<const std::int8_t *>(x.a_array[item]) : x.a + item * x.stride_a;
  const auto *b = x.b_array ? static_cast<const std::int8_t *>(x.b_array[item]) : x.b + item * x.stride_b;
  auto *c = x.c_array ? static_cast<std::int32_t *>(x.c_array[item]) : x.c + item * x.stride_c;
  const std::int64_t row = std::int64_t(blockIdx.x) * tile;
  for (std::int64_t col = std::int64_t(blockIdx.y) * tile; col < x.n; col += std::int64_t(gridDim.y) * tile) {
    std::uint32_t sums[tile / rows_of_threads] = {};
    for (std::int64_t depth = 0; depth < x.k; depth += tile) {
      for (int t = threadIdx.y; t < tile; t += rows_of_threads) {
        // threadIdx.x is along contiguous memory in either orientation.
        const std::int64_t i = row + (x.transposed_a ? t : threadIdx.x),
                           la = depth + (x.transposed_a ? threadIdx.x : t);
        const std::int8_t va = i < x.m && la < x.k ? a[x.transposed_a ? la + i * x.lda : i + la * x.lda] : 0;
        of_a[la - depth][i - row] = va;
        const std::int64_t j = col + (x.transposed_b ? threadIdx.x : t),
                           lb = depth + (x.transposed_b ? t : threadIdx.x);
        const std::int8_t vb = j < x.n && lb < x.k ? b[x.transposed_b ? j + lb * x.ldb : lb + j * x.ldb] : 0;
        of_b[lb - depth][j - col] = vb;
      }
      __syncthreads();
      for (int l = 0; l < tile; ++l) {
        const std::int32_t va = of_a[l][threadIdx.x];
        for (int s = 0; s < tile / rows_of_threads; ++s)
          sums[s] += std::uint32_t(va * of_b[l][threadIdx.y + s * rows_of_threads]);
      }
      __syncthreads();
    }
    for (int s = 0; s < tile / rows_of_threads; ++s) {
      const std::int64_t i = row + threadIdx.x, j = col + threadIdx.y + s * rows_of_threads;
      if (i >= x.m || j >= x.n) continue;
      std::int32_t &out = c[i + j * x.ldc];
      const std::uint32_t old = x.beta != 0 ? x.beta * std::uint32_t(out) : 0;
      out = std::int32_t(x.alpha * sums[s] + old);
    }
  }
}

__global__ void pack_i8_kernel(i8_panel x) {
  __shared__ std::int8_t held[tile][tile + 4];
  const auto *src = static_cast<const std::int8_t *>(x.src);
  auto *dst = static_cast<std::int8_t *>(x.dst);
  const std::int64_t depth = std::int64_t(blockIdx.x) * tile;
  for (std::int64_t line = std::int64_t(blockIdx.y) * tile; line < x.lines; line += std::int64_t(gridDim.y) * tile) {
    for (int t = threadIdx.y; t < tile; t += rows_of_threads) {
      const int in_line = x.depth_is_rows ? t : threadIdx.x, in_depth = x.depth_is_rows ? threadIdx.x : t;
      const std::int64_t r = line + in_line, l = depth + in_depth;
      held[in_line][in_depth] =
          r < x.lines && l < x.depth ? src[x.depth_is_rows ? l + r * x.ld : r + l * x.ld] : std::int8_t(0);
    }
    __syncthreads();
    for (int t = threadIdx.y; t < tile; t += rows_of_threads) {
      const std::int64_t r = line + t, l = depth + threadIdx.x;
      if (r < x.lines && l < x.padded_depth) dst[l + r * x.padded_depth] = held[t][threadIdx.x];
    }
    __syncthreads();
  }
}

unsigned tiles_of(std::int64_t extent, std::int64_t most) {
  const std::int64_t tiles = (extent + tile - 1) / tile;
  return unsigned(tiles < most ? tiles : most);
}

constexpr std::int64_t most_in_y = 65535, most_in_x = 2147483647;

}  // namespace gemm_i8_cu

cudaError_t launch_gemm_i8(const sg_backend_gemm &what, cudaStream_t in) noexcept {
  operands x{};
  x.a = static_cast<const std::int8_t *>(what.a);
  x.b = static_cast<const std::int8_t *>(what.b);
  x.c = static_cast<std::int32_t *>(what.c);
  x.a_array = what.a_array, x.b_array = what.b_array, x.c_array = what.c_array;
  x.stride_a = what.stride_a, x.stride_b = what.stride_b, x.stride_c = what.stride_c;
  x.m = what.m, x.n = what.n, x.k = what.k, x.lda = what.lda, x.ldb = what.ldb, x.ldc = what.ldc;
  x.transposed_a = what.op_a != SG_TRANSPOSE_N, x.transposed_b = what.op_b != SG_TRANSPOSE_N;
  x.alpha = std::uint32_t(std::int64_t(what.alpha.re)), x.beta = std::uint32_t(std::int64_t(what.beta.re));
  const dim3 block(tile, rows_of_threads);
  for (; x.first_item < what.batch; x.first_item += most_in_y) {
    const std::int64_t items = what.batch - x.first_item;
    const dim3 grid(tiles_of(what.m, most_in_x), tiles_of(what.n, most_in_y),
                    unsigned(items < most_in_y ? items : most_in_y));
    gemm_i8_kernel<<<grid, block, 0, in>>>(x);
    if (const cudaError_t error = cudaGetLastError()) return error;
  }
  return cudaSuccess;
}

cudaError_t launch_pack_i8(const i8_panel &what, cudaStream_t in) noexcept {
  const dim3 grid(tiles_of(what.padded_depth, most_in_x), tiles_of(what.lines, most_in_y));
  pack_i8_kernel<<<grid, dim3(tile, rows_of_threads), 0, in>>>(what);
  return cudaGetLastError();
}

}  // namespace sg::cuda
