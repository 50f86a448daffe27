// SPDX-License-Identifier: Apache-2.0
// A kernel: one way to compute one GEMM on one core. Each provider offers some; select.cpp chooses among them.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>

#include "backends/cpu/elements/epilogue.hpp"
#include "backends/cpu/elements/pack.hpp"

namespace sg::cpu {

class workspace;

// C = alpha * op(A) * op(B) + beta * C, one item, column major; by the rules of sg_backend_gemm.
struct gemm_args {
  std::int64_t m = 0, n = 0, k = 0;
  sg_transpose op_a = SG_TRANSPOSE_N, op_b = SG_TRANSPOSE_N;
  sg_scalar alpha = {1, 0}, beta = {0, 0};
  const void *a = nullptr;
  const void *b = nullptr;
  void *c = nullptr;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  epilogue end;  // applied by the kernel's caller
  // Operands of the next GEMM, which is otherwise equal: a kernel may prefetch them. NULL: unknown.
  struct operands {
    const void *a = nullptr, *b = nullptr, *c = nullptr;
  } next;
};

// The scalars that a kernel supports.
enum class scalars : std::uint8_t {
  any,
  one_and_zero_or_one,  // alpha 1, beta 0 or 1
};

// Layout of panels for one kernel. It multiplies full panels: their sides are rounded up to multiples, with zeros
// beyond the block. C has room for the rounded sides.
struct panel_layout {
  std::int64_t across = 1;                                            // multiple of op(A)'s rows and op(B)'s columns
  std::int64_t along = 1;                                             // of k
  void (*pack_a)(void *panel, const block &of_a) noexcept = nullptr;  // NULL: column major, as by pack()
  void (*pack_b)(void *panel, const block &of_b) noexcept = nullptr;
};

struct kernel {
  sg_dtype in = SG_DTYPE_F32;   // of A and B
  sg_dtype out = SG_DTYPE_F32;  // of C
  scalars takes = scalars::any;
  sg_status (*run)(const gemm_args &, workspace &) noexcept = nullptr;
  panel_layout layout = {};

  explicit operator bool() const noexcept { return run != nullptr; }
};

// The providers. Each returns an empty kernel for types that it does not support (on this processor). `in`, `out` as in
// kernel.
kernel onednn_kernel(sg_dtype in, sg_dtype out) noexcept;
kernel cblas_kernel(sg_dtype in, sg_dtype out) noexcept;
// The plain one multiplies panels only: no ops.
kernel plain_kernel(sg_dtype in, sg_dtype out) noexcept;
// For panels of its own layout, of bf16 with sums of f32, or of i8; where the processor has AMX or Arm's BFMMLA and
// SMMLA.
kernel mma_kernel(sg_dtype in, sg_dtype out) noexcept;
// For small GEMMs of f32 with op_a N, on unpacked operands.
kernel small_kernel(sg_dtype in, sg_dtype out) noexcept;

// First use of a provider's library in this process, on a temporary thread: afterwards its exit handlers are
// registered, and its one-time initialisation is complete.
sg_status onednn_warm_up() noexcept;
sg_status cblas_warm_up() noexcept;

}  // namespace sg::cpu
