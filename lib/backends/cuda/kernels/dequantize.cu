// SPDX-License-Identifier: Apache-2.0
// Y = (X - zero points) * scales, block by block.
#include <cstdint>

#include "arithmetic.cuh"
#include "layers.hpp"
#include "pack.cuh"

namespace sg::cuda {
inline namespace dequantize_cu {

constexpr int threads = 256;

// Values of one block that a thread computes at a time, and whether they are read and written in packs, which must be
// aligned.
struct in_packs {
  static constexpr int count = int(dequantized_in_packs);
  static constexpr bool packed = true;
};
struct in_pairs {
  static constexpr int count = 2;
  static constexpr bool packed = false;
};

template <bool four_bits, class Form>
__device__ void load_values(const std::uint8_t *row, std::int64_t col, float (&values)[Form::count]) {
  constexpr int bytes = four_bits ? Form::count / 2 : Form::count, step = Form::packed ? bytes : 1;
  const std::uint8_t *from = row + (four_bits ? col / 2 : col);
#pragma unroll
  for (int first = 0; first < bytes; first += step) {
    const pack<std::uint8_t, step> some = load_pack<step>(from + first);
#pragma unroll
    for (int b = 0; b < step; ++b) {
      const int byte = some.at[b];
      if (four_bits) {
        values[2 * (first + b)] = float((byte & 15) - (byte << 1 & 16));
        values[2 * (first + b) + 1] = float((byte >> 4) - (byte >> 3 & 16));
      } else {
        values[first + b] = float(std::int8_t(byte));
      }
    }
  }
}

template <class Form, class T>
__device__ void store_values(T *to, const float (&values)[Form::count]) {
  constexpr int most = Form::count < whole_pack<T> ? Form::count : whole_pack<T>, step = Form::packed ? most : 1;
#pragma unroll
  for (int first = 0; first < Form::count; first += step) {
    pack<T, step> out;
#pragma unroll
    for (int v = 0; v < step; ++v) out.at[v] = arithmetic<T>::rounded(values[first + v]);
    store_pack(to + first, out);
  }
}

// `shift`: the block size is 2^shift; negative: it is no power of two.
template <class T, class Scale, bool four_bits, class Form>
__global__ void dequantize_kernel(sg_backend_dequantize what, int shift) {
  for (std::int64_t i = blockIdx.y; i < what.rows; i += gridDim.y) {
    const auto *x = static_cast<const std::uint8_t *>(what.x) + i * what.x_row;
    const auto *scales = static_cast<const Scale *>(what.scales) + i * what.scales_row;
    const auto *zero_points = what.zero_points == nullptr ? nullptr : what.zero_points + i * what.zero_points_row;
    auto *y = static_cast<T *>(what.y) + i * what.y_row;
    for (std::int64_t col = (std::int64_t(blockIdx.x) * threads + threadIdx.x) * Form::count; col < what.cols;
         col += std::int64_t(gridDim.x) * threads * Form::count) {
      const std::int64_t block = shift < 0 ? col / what.block_size : col >> shift;
      const float scale = arithmetic<Scale>::widened(scales[block]);
      const float zero = zero_points == nullptr ? 0 : float(zero_points[block]);
      float values[Form::count];
      load_values<four_bits, Form>(x, col, values);
#pragma unroll
      for (float &value : values) value = (value - zero) * scale;
      store_values<Form>(y + col, values);
    }
  }
}

template <class T, class Scale, bool four_bits, class Form>
cudaError_t launch_form(const sg_backend_dequantize &what, cudaStream_t in) {
  const auto blocks = [](std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); };
  const std::int64_t run = std::int64_t(threads) * Form::count;
  const dim3 grid(blocks((what.cols + run - 1) / run, 1 << 16), blocks(what.rows, 4096));
  int shift = -1;
  for (int bit = 1; bit < 62; ++bit)
    if (what.block_size == std::int64_t(1) << bit) shift = bit;
  dequantize_kernel<T, Scale, four_bits, Form><<<grid, threads, 0, in>>>(what, shift);
  return cudaGetLastError();
}

template <class T, class Scale, bool four_bits>
cudaError_t launch_bits(const sg_backend_dequantize &what, cudaStream_t in) {
  return is_in_packs(what) ? launch_form<T, Scale, four_bits, in_packs>(what, in)
                           : launch_form<T, Scale, four_bits, in_pairs>(what, in);
}

template <class T, class Scale>
cudaError_t launch_scaled(const sg_backend_dequantize &what, cudaStream_t in) {
  return what.quantization == SG_QUANTIZATION_I4 ? launch_bits<T, Scale, true>(what, in)
                                                 : launch_bits<T, Scale, false>(what, in);
}

template <class T>
cudaError_t launch_to(const sg_backend_dequantize &what, cudaStream_t in) {
  switch (what.scale_type) {
    case SG_DTYPE_F32: return launch_scaled<T, float>(what, in);
    case SG_DTYPE_F16: return launch_scaled<T, __half>(what, in);
    case SG_DTYPE_BF16: return launch_scaled<T, __nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace dequantize_cu

cudaError_t launch_dequantize(const sg_backend_dequantize &what, cudaStream_t in) noexcept {
  switch (what.type) {
    case SG_DTYPE_F32: return launch_to<float>(what, in);
    case SG_DTYPE_F16: return launch_to<__half>(what, in);
    case SG_DTYPE_BF16: return launch_to<__nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
