// SPDX-License-Identifier: Apache-2.0
// A kernel: one way to compute one product on one core. Each provider offers some; select.cpp chooses among them.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>

namespace sg::cpu {

class workspace;

// What is done to the sums of a product or a reduction before they are C: see epilogue.hpp.
struct epilogue {
  const void *bias = nullptr;
  bool bias_per_row = false;
  sg_activation activation = SG_ACTIVATION_NONE;
};

// C = alpha * op(A) * op(B) + beta * C, one item, column major; the rules of sg_backend_gemm hold.
struct gemm_args {
  std::int64_t m = 0, n = 0, k = 0;
  sg_op op_a = SG_OP_N, op_b = SG_OP_N;
  sg_scalar alpha = {1, 0}, beta = {0, 0};
  const void *a = nullptr;
  const void *b = nullptr;
  void *c = nullptr;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  epilogue end;  // kernels leave it to their callers
  // Of the product that comes next, which differs in these only: a kernel may ask the memory for them. Or none.
  struct operands {
    const void *a = nullptr, *b = nullptr, *c = nullptr;
  } next;
};

inline bool is_zero(const sg_scalar &x) noexcept { return x.re == 0 && x.im == 0; }
inline bool is_one(const sg_scalar &x) noexcept { return x.re == 1 && x.im == 0; }

// Which scalars a kernel takes.
enum class scalars : std::uint8_t {
  any,
  one_and_zero_or_one,  // alpha 1, beta 0 or 1
};

// The rows x cols block of op(X) that begins at (row, col).
struct block {
  const void *x = nullptr;
  sg_dtype type = SG_DTYPE_F32;
  std::int64_t ld = 0;
  sg_op op = SG_OP_N;
  std::int64_t row = 0, col = 0, rows = 0, cols = 0;
};

// How panels lie that one kernel alone can read. It multiplies whole ones: their sides are rounded up to multiples, and
// what is beyond the block is zeros. C has room for such sides too.
struct panel_layout {
  std::int64_t across = 1;                                            // multiple of op(A)'s rows and op(B)'s columns
  std::int64_t along = 1;                                             // of k
  void (*pack_a)(void *panel, const block &of_a) noexcept = nullptr;  // NULL: column major, as pack() leaves them
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

// The providers. Each returns an empty kernel for what it does not serve (on this processor). `in`, `out` as in kernel.
kernel onednn_kernel(sg_dtype in, sg_dtype out) noexcept;
kernel cblas_kernel(sg_dtype in, sg_dtype out) noexcept;
// The plain one multiplies panels only: no ops.
kernel plain_kernel(sg_dtype in, sg_dtype out) noexcept;
// For panels of its own layout, of bf16 with sums of f32, or of i8; where the processor has AMX.
kernel amx_kernel(sg_dtype in, sg_dtype out) noexcept;
// For small products of f32 with op_a N, whose operands it multiplies as they lie.
kernel small_kernel(sg_dtype in, sg_dtype out) noexcept;

// First use of a provider's library in this process, on a thread that may be thrown away: afterwards its own exit
// handlers are registered, and its one-time initialisation is behind us.
sg_status onednn_warm_up() noexcept;
sg_status cblas_warm_up() noexcept;

}  // namespace sg::cpu
