// SPDX-License-Identifier: Apache-2.0
// Converts f8 numbers to bf16 or f16, both exact.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "kernels.hpp"

namespace sg::cuda {
inline namespace widen_f8_cu {

constexpr int threads = 128;
constexpr int together = 4;  // elements that a thread reads at once, if aligned

struct parameters {
  f8_panel panels[most_parameter_panels];
};
static_assert(sizeof(parameters) <= 4096);

__device__ void store(__half *to, __half value) { *to = value; }
__device__ void store(__nv_bfloat16 *to, __half value) { *to = __float2bfloat16_rn(__half2float(value)); }

template <class Wide>
__device__ void widen(Wide *to, unsigned byte, __nv_fp8_interpretation_t format) {
  store(to, __half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(byte), format)));
}

// A block has a part of a column; blockIdx.z is the panel's number, and its items' columns follow each other.
template <class Wide>
__global__ void widen_kernel(const __grid_constant__ parameters all, __nv_fp8_interpretation_t format) {
  const f8_panel &p = all.panels[blockIdx.z];
  for (std::int64_t column = blockIdx.y; column < p.cols * p.items; column += gridDim.y) {
    const std::int64_t item = column / p.cols, j = column % p.cols;
    const auto *src = static_cast<const unsigned char *>(p.src) + item * p.src_stride + j * p.src_ld;
    auto *dst = static_cast<Wide *>(p.dst) + (item * p.cols + j) * p.dst_ld;
    const bool aligned = reinterpret_cast<std::uintptr_t>(src) % together == 0;
    for (std::int64_t i = (std::int64_t(blockIdx.x) * threads + threadIdx.x) * together; i < p.rows;
         i += std::int64_t(gridDim.x) * threads * together) {
      if (aligned && i + together <= p.rows) {
        const unsigned four = *reinterpret_cast<const unsigned *>(src + i);
        alignas(8) Wide wide[together];
        for (int e = 0; e < together; ++e) widen(wide + e, four >> (8 * e) & 0xffu, format);
        *reinterpret_cast<uint2 *>(dst + i) = *reinterpret_cast<const uint2 *>(wide);
      } else {
        for (int e = 0; e < together && i + e < p.rows; ++e) widen(dst + i + e, src[i + e], format);
      }
    }
  }
}

}  // namespace widen_f8_cu

cudaError_t launch_widen_f8(const f8_panel *panels, int count, sg_dtype from, sg_dtype to, cudaStream_t in) noexcept {
  parameters all;
  std::copy(panels, panels + count, all.panels);
  std::int64_t rows = 1, columns = 1;
  for (int i = 0; i < count; ++i) {
    rows = std::max(rows, panels[i].rows);
    columns = std::max(columns, panels[i].cols * panels[i].items);
  }
  const std::int64_t part = threads * together;
  const dim3 grid(unsigned(std::min<std::int64_t>((rows + part - 1) / part, 1024)),
                  unsigned(std::min<std::int64_t>(columns, 8192)), unsigned(count));
  const auto format = from == SG_DTYPE_F8_E4M3 ? __NV_E4M3 : __NV_E5M2;
  if (to == SG_DTYPE_F16)
    widen_kernel<__half><<<grid, threads, 0, in>>>(all, format);
  else
    widen_kernel<__nv_bfloat16><<<grid, threads, 0, in>>>(all, format);
  return cudaGetLastError();
}

}  // namespace sg::cuda
