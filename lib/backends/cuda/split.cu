// SPDX-License-Identifier: Apache-2.0
// f32 numbers as sums of two short ones.
#include <cuda_bf16.h>

#include "kernels.hpp"

namespace sg::cuda {
namespace {

__device__ float cut_to_tf32(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }

// To 11 significant bits, ties away from zero, as the chip's own conversion does; what would become infinity is cut
// off, and so is a NaN, whose bits are not to be carried into its sign.
__device__ float to_tf32(float x) {
  const unsigned rounded = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
  const bool is_number = isfinite(x) && (rounded & 0x7f800000u) != 0x7f800000u;
  return is_number ? __uint_as_float(rounded) : cut_to_tf32(x);
}

struct as_tf32 {
  using type = float;
  static __device__ float high(float x) { return to_tf32(x); }
  static __device__ float stored(float x) { return to_tf32(x); }
  static __device__ float cut(float x) { return cut_to_tf32(x); }
};

struct as_bf16 {
  using type = __nv_bfloat16;
  static __device__ float high(float x) {
    const float rounded = __bfloat162float(__float2bfloat16_rn(x));
    return isinf(rounded) ? __uint_as_float(__float_as_uint(x) & 0xffff0000u) : rounded;
  }
  static __device__ __nv_bfloat16 stored(float x) { return __float2bfloat16_rn(x); }
  static __device__ __nv_bfloat16 cut(float x) { return __float2bfloat16_rz(x); }
};

template <class Format>
__global__ void split_kernel(split_panel x) {
  using type = typename Format::type;
  auto *dst = static_cast<type *>(x.dst);
  const std::int64_t ld = x.depth_is_rows ? 3 * x.rows : x.rows;
  const std::int64_t to_next = x.depth_is_rows ? x.rows : x.rows * x.cols;  // from one block to the next
  for (std::int64_t j = blockIdx.y; j < x.cols; j += gridDim.y)
    for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < x.rows;
         i += std::int64_t(gridDim.x) * blockDim.x) {
      const float value = x.src[i + j * x.ld];
      // What is not finite stands in the first block only, where the others would multiply infinity by the low part of
      // 1; twice it is the same infinity, or a NaN whose bits a short format keeps.
      const bool finite = isfinite(value);
      const float high = finite ? Format::high(value) : value + value;
      const float again = finite ? high : 0.0f, low = finite ? value - high : 0.0f;
      // The parts of one of the largest numbers add up to no more than it: one more would be infinity.
      const type low_part = fabsf(value) < 0x1p127f ? Format::stored(low) : Format::cut(low);
      type *out = dst + i + j * ld;
      out[0] = Format::stored(high);
      out[to_next] = x.second_is_low ? low_part : Format::stored(again);
      out[2 * to_next] = x.second_is_low ? Format::stored(again) : low_part;
    }
}

}  // namespace

cudaError_t launch_split(const split_panel &what, cudaStream_t in) noexcept {
  constexpr int threads = 256;
  const auto blocks = [](std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); };
  const dim3 grid(blocks((what.rows + threads - 1) / threads, 64), blocks(what.cols, 65535));
  if (what.format == short_format::tf32)
    split_kernel<as_tf32><<<grid, threads, 0, in>>>(what);
  else
    split_kernel<as_bf16><<<grid, threads, 0, in>>>(what);
  return cudaGetLastError();
}

}  // namespace sg::cuda
