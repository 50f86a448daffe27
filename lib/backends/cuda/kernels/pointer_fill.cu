// SPDX-License-Identifier: Apache-2.0
// Writes pointer arrays on the device, from base addresses and strides.
#include <algorithm>

#include "kernels.hpp"

namespace sg::cuda {
inline namespace pointer_fill_cu {

constexpr int threads = 256;

// Kernels may have 4 KiB of parameters on every chip.
template <int Most>
struct parameters {
  item_bases items[Most];
  int item_count;
  std::int64_t first, count;
  const void **to;
};
static_assert(sizeof(parameters<most_parameter_items>) <= 4096);

template <int Most>
__global__ void fill_kernel(const __grid_constant__ parameters<Most> p) {
  const int i = int(threadIdx.x);
  if (i >= p.item_count) return;
#pragma unroll
  for (int o = 0; o < 3; ++o) p.to[o * p.count + p.first + i] = p.items[i].of[o];
}

template <int Most>
cudaError_t fill(const pointer_fill &what, cudaStream_t in) {
  static_assert(Most <= threads);
  parameters<Most> p;
  std::copy(what.items, what.items + what.item_count, p.items);
  p.item_count = what.item_count;
  p.first = what.first;
  p.count = what.count;
  p.to = what.to;
  fill_kernel<Most><<<1, threads, 0, in>>>(p);
  return cudaGetLastError();
}

}  // namespace pointer_fill_cu

cudaError_t launch_pointer_fill(const pointer_fill &what, cudaStream_t in) noexcept {
  return what.item_count <= 16 ? fill<16>(what, in) : fill<most_parameter_items>(what, in);
}

}  // namespace sg::cuda
