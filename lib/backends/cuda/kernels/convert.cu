// SPDX-License-Identifier: Apache-2.0
// C = op(A), cast to C's type: by packs of a column, or transposed by tiles in shared memory.
#include <cstdint>
#include <type_traits>

#include "arithmetic.cuh"
#include "layers.hpp"
#include "pack.cuh"

namespace sg::cuda {
inline namespace convert_cu {

// One rounding, from f64 too.
inline __device__ void cast(double from, double &to) { to = from; }
inline __device__ void cast(double from, float &to) { to = __double2float_rn(from); }
inline __device__ void cast(double from, __half &to) { to = __double2half(from); }
inline __device__ void cast(double from, __nv_bfloat16 &to) { to = __double2bfloat16(from); }
inline __device__ void cast(float from, double &to) { to = from; }
inline __device__ void cast(float from, float &to) { to = from; }
inline __device__ void cast(float from, __half &to) { to = __float2half_rn(from); }
inline __device__ void cast(float from, __nv_bfloat16 &to) { to = __float2bfloat16_rn(from); }
template <class To>
__device__ void cast(__half from, To &to) {
  cast(__half2float(from), to);
}
template <class To>
__device__ void cast(__nv_bfloat16 from, To &to) {
  cast(__bfloat162float(from), to);
}
// With one type NaN keeps its bits.
inline __device__ void cast(__half from, __half &to) { to = from; }
inline __device__ void cast(__nv_bfloat16 from, __nv_bfloat16 &to) { to = from; }

constexpr int threads = 256;

// The quotient of an element of a column; `divides` only with f32.
template <bool divides, class From>
__device__ From divided(From from, float divisor) {
  if constexpr (divides)
    return from / divisor;
  else
    return from;
}

template <class From, class To, int count, bool divides>
__device__ void cast_item(const sg_backend_convert &what, std::int64_t item) {
  for (std::int64_t j = std::int64_t(blockIdx.y) * blockDim.y + threadIdx.y; j < what.n; j += gridDim.y * blockDim.y) {
    const From *a = static_cast<const From *>(what.a) + item * what.stride_a + j * what.lda;
    To *c = static_cast<To *>(what.c) + item * what.stride_c + j * what.ldc;
    float divisor = divides ? what.divisors[item * what.n + j] : 1;
    if (divisor == 0) divisor = 1;
    for (std::int64_t i = (std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * count; i < what.m;
         i += std::int64_t(gridDim.x) * blockDim.x * count) {
      if (i + count <= what.m) {
        const pack<From, count> from = load_pack<count>(a + i);
        pack<To, count> to;
#pragma unroll
        for (int v = 0; v < count; ++v) cast(divided<divides>(from.at[v], divisor), to.at[v]);
        store_pack(c + i, to);
      } else {
        for (std::int64_t at = i; at < what.m; ++at) cast(divided<divides>(a[at], divisor), c[at]);
      }
    }
  }
}

template <class From, class To, int count, bool divides>
__global__ void cast_kernel(sg_backend_convert what) {
  for (std::int64_t item = blockIdx.z; item < what.batch; item += gridDim.z)
    cast_item<From, To, count, divides>(what, item);
}

constexpr int side = 32, lines = 8;

// A column of padding keeps the rows of a tile in different banks.
template <class From, class To>
__device__ void transpose_item(const sg_backend_convert &what, std::int64_t item) {
  __shared__ From tile[side][side + 1];
  const auto *a = static_cast<const From *>(what.a) + item * what.stride_a;
  auto *c = static_cast<To *>(what.c) + item * what.stride_c;
  for (std::int64_t j0 = std::int64_t(blockIdx.y) * side; j0 < what.n; j0 += std::int64_t(gridDim.y) * side)
    for (std::int64_t i0 = std::int64_t(blockIdx.x) * side; i0 < what.m; i0 += std::int64_t(gridDim.x) * side) {
      __syncthreads();  // the previous tile has been read
      if (j0 + threadIdx.x < what.n)
        for (int line = threadIdx.y; line < side && i0 + line < what.m; line += lines)
          tile[line][threadIdx.x] = a[(j0 + threadIdx.x) + (i0 + line) * what.lda];
      __syncthreads();
      if (i0 + threadIdx.x < what.m)
        for (int line = threadIdx.y; line < side && j0 + line < what.n; line += lines)
          cast(tile[threadIdx.x][line], c[(i0 + threadIdx.x) + (j0 + line) * what.ldc]);
    }
}

template <class From, class To>
__global__ void __launch_bounds__(side *lines) transpose_kernel(sg_backend_convert what) {
  for (std::int64_t item = blockIdx.z; item < what.batch; item += gridDim.z) transpose_item<From, To>(what, item);
}

unsigned limited(std::int64_t wanted, std::int64_t most) { return unsigned(wanted < most ? wanted : most); }
unsigned grid_of_items(const sg_backend_convert &what) { return limited(what.batch, 1 << 15); }

template <class From, class To, int count, bool divides = false>
cudaError_t launch_cast(const sg_backend_convert &what, cudaStream_t in) {
  // A block has several short columns.
  unsigned of_column = 4;
  while (of_column < threads && std::int64_t(of_column) * count < what.m) of_column *= 2;
  const dim3 block(of_column, threads / of_column);
  const std::int64_t run = std::int64_t(of_column) * count;
  const dim3 grid(limited((what.m + run - 1) / run, 1 << 16), limited((what.n + block.y - 1) / block.y, 4096),
                  grid_of_items(what));
  cast_kernel<From, To, count, divides><<<grid, block, 0, in>>>(what);
  return cudaGetLastError();
}

template <class From, class To>
cudaError_t launch_pair(const sg_backend_convert &given, cudaStream_t in) {
  const sg_backend_convert what = as_one_column(given);
  if (what.op == SG_TRANSPOSE_T) {
    const dim3 grid(limited((what.m + side - 1) / side, 1 << 16), limited((what.n + side - 1) / side, 1 << 15),
                    grid_of_items(what));
    transpose_kernel<From, To><<<grid, dim3(side, lines), 0, in>>>(what);
    return cudaGetLastError();
  }
  constexpr int count = int(whole_pack_of(sizeof(From), sizeof(To)));
  static_assert(count * sizeof(From) <= 32 && count * sizeof(To) <= 32, "a pack is two accesses at most");
  const bool in_packs = pack_of(what) == count;
  if constexpr (std::is_same_v<From, float>)
    if (what.divisors != nullptr)
      return in_packs ? launch_cast<From, To, count, true>(what, in) : launch_cast<From, To, 1, true>(what, in);
  return in_packs ? launch_cast<From, To, count>(what, in) : launch_cast<From, To, 1>(what, in);
}

template <class From>
cudaError_t launch_from(const sg_backend_convert &what, cudaStream_t in) {
  switch (what.out_type) {
    case SG_DTYPE_F64: return launch_pair<From, double>(what, in);
    case SG_DTYPE_F32: return launch_pair<From, float>(what, in);
    case SG_DTYPE_F16: return launch_pair<From, __half>(what, in);
    case SG_DTYPE_BF16: return launch_pair<From, __nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace convert_cu

cudaError_t launch_convert(const sg_backend_convert &what, cudaStream_t in) noexcept {
  switch (what.in_type) {
    case SG_DTYPE_F64: return launch_from<double>(what, in);
    case SG_DTYPE_F32: return launch_from<float>(what, in);
    case SG_DTYPE_F16: return launch_from<__half>(what, in);
    case SG_DTYPE_BF16: return launch_from<__nv_bfloat16>(what, in);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace sg::cuda
