// SPDX-License-Identifier: Apache-2.0
// Splits f32 numbers into sums of two short ones.
#include <cuda_bf16.h>

#include "kernels.hpp"

namespace sg::cuda {
inline namespace split_cu {

__device__ float cut_to_tf32(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }

// Rounds to 11 significant bits, ties away from zero, like the chip's own conversion; truncates where that would give
// infinity, and NaNs, whose bits must not carry into the sign.
__device__ float to_tf32(float x) {
  const unsigned rounded = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
  const bool is_number = isfinite(x) && (rounded & 0x7f800000u) != 0x7f800000u;
  return is_number ? __uint_as_float(rounded) : cut_to_tf32(x);
}

// Rounds to bf16, or truncates where that would give infinity.
__device__ __nv_bfloat16 to_bf16(float x) {
  const __nv_bfloat16 rounded = __float2bfloat16_rn(x);
  return isinf(__bfloat162float(rounded)) ? __float2bfloat16_rz(x) : rounded;
}

struct as_tf32 {
  using type = float;
  static __device__ float high(float x) { return to_tf32(x); }
};

struct as_bf16 {
  using type = __nv_bfloat16;
  static __device__ __nv_bfloat16 high(float x) { return to_bf16(x); }
};

__device__ float value_of(float x) { return x; }
__device__ float value_of(__nv_bfloat16 x) { return __bfloat162float(x); }

// Elements read and written at once.
template <class Element, int width>
struct alignas(sizeof(Element) * width) pack {
  Element of[width];
};
template <int width, class Element>
__device__ pack<Element, width> load(const Element *first) {
  return *reinterpret_cast<const pack<Element, width> *>(first);
}
template <int width, class Element>
__device__ void store(Element *first, const pack<Element, width> &values) {
  *reinterpret_cast<pack<Element, width> *>(first) = values;
}

template <class Format, int width>
__global__ void split_kernel(split_panel x) {
  using type = typename Format::type;
  auto *high_parts = static_cast<type *>(x.high);
  auto *corrections = static_cast<__nv_bfloat16 *>(x.corrections);
  const std::int64_t to_second = x.depth_is_rows ? x.rows : x.cols * x.corrections_ld;
  for (std::int64_t j = blockIdx.y; j < x.cols; j += gridDim.y)
    for (std::int64_t i = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * width; i < x.rows;
         i += std::int64_t(gridDim.x) * blockDim.x * width) {
      const auto values = load<width>(x.src + i + j * x.ld);
      pack<type, width> high;
      pack<__nv_bfloat16, width> again, low;
      for (int w = 0; w < width; ++w) {
        const float value = values.of[w];
        // Infinities and NaNs are in the high parts only: a correction would multiply infinity by the low part of 1.
        // Doubled it is the same infinity, or a NaN whose bits a short format keeps.
        const bool finite = isfinite(value);
        high.of[w] = finite ? Format::high(value) : type(value + value);
        const float rest = finite ? value - value_of(high.of[w]) : 0.0f;
        // The parts of one of the largest numbers must not add up to more than it, which would be infinity.
        low.of[w] = fabsf(value) < 0x1p127f ? __float2bfloat16_rn(rest) : __float2bfloat16_rz(rest);
        again.of[w] = finite ? to_bf16(value_of(high.of[w])) : __nv_bfloat16(0.0f);
      }
      store(high_parts + i + j * x.high_ld, high);
      __nv_bfloat16 *const out = corrections + i + j * x.corrections_ld;
      store(out, x.low_first ? low : again);
      store(out + to_second, x.low_first ? again : low);
    }
}

template <int width>
void launch(const split_panel &what, cudaStream_t in) noexcept {
  constexpr int threads = 256;
  const auto blocks = [](std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); };
  const dim3 grid(blocks((what.rows / width + threads - 1) / threads, 64), blocks(what.cols, 65535));
  if (what.format == short_format::tf32)
    split_kernel<as_tf32, width><<<grid, threads, 0, in>>>(what);
  else
    split_kernel<as_bf16, width><<<grid, threads, 0, in>>>(what);
}

}  // namespace split_cu

cudaError_t launch_split(const split_panel &what, cudaStream_t in) noexcept {
  if (pack_of(what) == split_pack)
    launch<int(split_pack)>(what, in);
  else
    launch<1>(what, in);
  return cudaGetLastError();
}

}  // namespace sg::cuda
