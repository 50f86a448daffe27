// SPDX-License-Identifier: Apache-2.0
// C = activation(beta * C + the parts + bias), added in C's accumulator.
#include "accesses.hpp"
#include "arithmetic.cuh"
#include "kernels.hpp"
#include "pack.cuh"

namespace sg::cuda {
inline namespace reduce_cu {

constexpr int threads = 256;

// A thread has `count` neighbouring rows of a column.
template <class T, class Part, int count>
__global__ void __launch_bounds__(threads) reduce_kernel(sg_backend_reduce what, bool reads_c) {
  using ops = arithmetic<T>;
  using sum = typename ops::sum;
  auto *c = static_cast<T *>(what.c);
  const auto *parts = static_cast<const Part *>(what.parts);
  const auto *bias = static_cast<const T *>(what.bias);
  for (std::int64_t j = blockIdx.y; j < what.n; j += gridDim.y)
    for (std::int64_t i = (std::int64_t(blockIdx.x) * threads + threadIdx.x) * count; i < what.m;
         i += std::int64_t(gridDim.x) * threads * count) {
      T *const to = c + i + j * what.ldc;
      const Part *part = parts + i + j * what.part_ld;
      sum total[count] = {};
      pack<T, count> out;
      if (reads_c) {
        out = load_pack<count>(to);
#pragma unroll
        for (int v = 0; v < count; ++v) total[v] = ops::scaled(what.beta, out.at[v]);
      }
      for (std::int64_t next = 0; next < what.parts_count; ++next, part += what.part_stride) {
        const pack<Part, count> values = load_pack<count>(part);
#pragma unroll
        for (int v = 0; v < count; ++v) {
          const sum value = arithmetic<Part>::widened(values.at[v]);
          total[v] = next == 0 && !reads_c ? value : ops::plus(total[v], value);
        }
      }
#pragma unroll
      for (int v = 0; v < count; ++v) {
        if (bias != nullptr) total[v] = ops::plus(total[v], ops::widened(bias[what.bias_per_row ? i + v : j]));
        out.at[v] = ops::rounded(activated(total[v], what.activation));
      }
      store_pack(to, out);
    }
}

// Of many parts of few elements: groups of threads add the parts of a range in order, and then their sums.
template <class T, class Part, int groups>
__global__ void __launch_bounds__(32 * groups) reduce_many_kernel(sg_backend_reduce what, bool reads_c) {
  using ops = arithmetic<T>;
  using sum = typename ops::sum;
  constexpr int rows = 32;
  __shared__ sum sums[groups][rows];
  const auto *parts = static_cast<const Part *>(what.parts);
  const auto *bias = static_cast<const T *>(what.bias);
  const int lane = int(threadIdx.x) % rows, group = int(threadIdx.x) / rows;
  const std::int64_t each = (what.parts_count + groups - 1) / groups, first = group * each;
  const std::int64_t end = first + each < what.parts_count ? first + each : what.parts_count;
  for (std::int64_t j = blockIdx.y; j < what.n; j += gridDim.y)
    for (std::int64_t top = std::int64_t(blockIdx.x) * rows; top < what.m; top += std::int64_t(gridDim.x) * rows) {
      const std::int64_t i = top + lane;
      sum total{};
      if (i < what.m) {
        if (reads_c && group == 0) total = ops::scaled(what.beta, static_cast<T *>(what.c)[i + j * what.ldc]);
        const Part *part = parts + i + j * what.part_ld + first * what.part_stride;
#pragma unroll 4
        for (std::int64_t next = first; next < end; ++next, part += what.part_stride) {
          const sum value = arithmetic<Part>::widened(*part);
          total = next == first && !(reads_c && group == 0) ? value : ops::plus(total, value);
        }
      }
      sums[group][lane] = total;
      __syncthreads();
      if (group == 0 && i < what.m) {
        T &to = static_cast<T *>(what.c)[i + j * what.ldc];
        for (int other = 1; other < groups && other * each < what.parts_count; ++other)
          total = ops::plus(total, sums[other][lane]);
        if (bias != nullptr) total = ops::plus(total, ops::widened(bias[what.bias_per_row ? i : j]));
        to = ops::rounded(activated(total, what.activation));
      }
      __syncthreads();
    }
}

unsigned blocks(std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); }

template <class T, class Part, int count>
cudaError_t launch_packs(const sg_backend_reduce &what, cudaStream_t in, bool reads_c) {
  const std::int64_t step = std::int64_t(threads) * count;
  const dim3 grid(blocks((what.m + step - 1) / step, 1024), blocks(what.n, 4096));
  reduce_kernel<T, Part, count><<<grid, threads, 0, in>>>(what, reads_c);
  return cudaGetLastError();
}

template <class T, class Part = typename arithmetic<T>::sum>
cudaError_t launch(const sg_backend_reduce &what, cudaStream_t in, bool reads_c) {
  constexpr std::int64_t many_parts = 16, few_elements = 1 << 16;
  if (what.parts_count >= many_parts && what.m * what.n <= few_elements) {
    const dim3 grid(blocks((what.m + 31) / 32, 4096), blocks(what.n, 4096));
    if (what.parts_count >= 8 * many_parts)
      reduce_many_kernel<T, Part, 32><<<grid, 1024, 0, in>>>(what, reads_c);
    else
      reduce_many_kernel<T, Part, 8><<<grid, 256, 0, in>>>(what, reads_c);
    return cudaGetLastError();
  }
  if constexpr (sizeof(Part) <= 4 && sizeof(T) <= 4) {
    constexpr int count = 4;
    constexpr std::int64_t size = sizeof(T), part_size = sizeof(Part);
    const bool in_packs =
        what.m % count == 0 &&
        are_aligned({{what.c, count * size, what.n, what.ldc * size},
                     {what.parts, count * part_size, what.n, what.part_ld * part_size},
                     {what.parts, count * part_size, what.parts_count, what.part_stride * part_size}});
    if (in_packs) return launch_packs<T, Part, count>(what, in, reads_c);
  }
  return launch_packs<T, Part, 1>(what, in, reads_c);
}

}  // namespace reduce_cu

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
