// SPDX-License-Identifier: Apache-2.0
// Small GEMMs of f32, for which a library's packing, or its selection of a kernel, costs as much as the arithmetic.
#include "backends/cpu/simd/simd.hpp"
#include "kernel.hpp"

namespace sg::cpu {
namespace {

sg_status run_small(const gemm_args &p, workspace &) noexcept {
  simd().multiply_small(p);
  return SG_STATUS_OK;
}

}  // namespace

kernel small_kernel(sg_dtype in, sg_dtype out) noexcept {
  if (in != SG_DTYPE_F32 || out != SG_DTYPE_F32 || simd().multiply_small == nullptr) return {};
  return {.in = in, .out = out, .run = run_small};
}

}  // namespace sg::cpu
