// SPDX-License-Identifier: Apache-2.0
// Arrays of pointers written on the device, from the few addresses that they follow from.
#include "kernels.hpp"

#include <algorithm>

namespace sg::cuda {
namespace {

constexpr int threads = 256;

// Kernels may have 4 KiB of parameters everywhere.
template <int Most>
struct parameters {
  member_bases members[Most];
  std::int64_t stride_bytes[3];
  std::int64_t items, here, first, count;
  const void **to;
};
static_assert(sizeof(parameters<most_parameter_members>) <= 4096);

template <int Most>
__global__ void fill_kernel(const __grid_constant__ parameters<Most> p) {
  const std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x;
  if (i >= p.here) return;
  const member_bases &bases = p.members[i / p.items];
  const std::int64_t item = i % p.items;
#pragma unroll
  for (int o = 0; o < 3; ++o) p.to[o * p.count + p.first + i] = bases.of[o] + item * p.stride_bytes[o];
}

template <int Most>
cudaError_t fill(const pointer_fill &what, cudaStream_t in) {
  parameters<Most> p;
  std::copy(what.members, what.members + what.member_count, p.members);
  std::copy(what.stride_bytes, what.stride_bytes + 3, p.stride_bytes);
  p.items = what.items;
  p.here = what.items * what.member_count;
  p.first = what.first;
  p.count = what.count;
  p.to = what.to;
  fill_kernel<Most><<<unsigned((p.here + threads - 1) / threads), threads, 0, in>>>(p);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_pointer_fill(const pointer_fill &what, cudaStream_t in) noexcept {
  return what.member_count <= 16 ? fill<16>(what, in) : fill<most_parameter_members>(what, in);
}

}  // namespace sg::cuda
