// SPDX-License-Identifier: Apache-2.0
// The operations of symmetric.h, on one thread: by CBLAS, or in plain loops. A product goes by some columns or rows of
// C at a time; an update by block columns, of each the block on the diagonal and the rectangle beside it.
#include <type_traits>
#include <utility>

#include "backends/common/triangles.hpp"
#include "backends/cpu/gemm/gemm.hpp"
#include "backends/cpu/worker/panels.hpp"
#ifdef SG_CPU_CBLAS
#include "backends/cpu/gemm/cblas_triangles.hpp"
#endif

namespace sg::cpu {
namespace {

sg_status run_block(const sg_backend_symmetric &what) noexcept {
#ifdef SG_CPU_CBLAS
  if (cblas_takes(what)) return cblas_symmetric(what);
#endif
  with_blas_type(what.type, [&]<class T>() {
    compute_symmetric(what, static_cast<const T *>(what.a), static_cast<const T *>(what.b), static_cast<T *>(what.c));
  });
  return SG_STATUS_OK;
}

template <class Pointer>
Pointer moved(Pointer of, std::int64_t elements, sg_dtype type) noexcept {
  if (of == nullptr) return of;
  using byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
  return static_cast<byte *>(of) + elements * element_size(type);
}

sg_status run_product(const sg_backend_symmetric &what, workspace &space) noexcept {
  const bool is_left = what.side == SG_SIDE_LEFT;
  const auto order = static_cast<double>(is_left ? what.m : what.n);
  return in_panels(is_left ? what.n : what.m, order * order, space, [&](std::int64_t first, std::int64_t width) {
    sg_backend_symmetric panel = what;
    (is_left ? panel.n : panel.m) = width;
    panel.b = moved(what.b, first * (is_left ? what.ldb : 1), what.type);
    panel.c = moved(what.c, first * (is_left ? what.ldc : 1), what.type);
    return run_block(panel);
  });
}

// C = alpha * op(X) * op(Y)' + beta * C of the rows and columns of C from these on.
sg_backend_gemm rectangle_of(const sg_backend_symmetric &what, std::int64_t row, std::int64_t rows, std::int64_t col,
                             std::int64_t cols) noexcept {
  const bool is_plain = what.op == SG_TRANSPOSE_N;
  const sg_transpose primed = what.symmetry == SG_SYMMETRY_HERMITIAN ? SG_TRANSPOSE_C : SG_TRANSPOSE_T;
  sg_backend_gemm g{};
  g.header = {sizeof g, SG_BACKEND_GEMM};
  g.m = rows, g.n = cols, g.k = what.k, g.batch = 1;
  g.op_a = what.op, g.op_b = is_plain ? primed : SG_TRANSPOSE_N;
  g.in_type = g.out_type = what.type;
  g.alpha = what.alpha, g.beta = what.beta;
  const void *other = what.b == nullptr ? what.a : what.b;
  g.lda = what.lda, g.ldb = what.b == nullptr ? what.lda : what.ldb, g.ldc = what.ldc;
  g.a = moved(what.a, row * (is_plain ? 1 : what.lda), what.type);
  g.b = moved(other, col * (is_plain ? 1 : g.ldb), what.type);
  g.c = moved(what.c, row + col * what.ldc, what.type);
  return g;
}

sg_status run_rectangle(const sg_backend_symmetric &what, std::int64_t row, std::int64_t rows, std::int64_t col,
                        std::int64_t cols, workspace &space) noexcept {
  const sg_backend_gemm first = rectangle_of(what, row, rows, col, cols);
  const sg_status status = run_gemm(first, nullptr, space);
  if (status != SG_STATUS_OK || what.b == nullptr) return status;
  sg_backend_symmetric swapped = what;
  std::swap(swapped.a, swapped.b), std::swap(swapped.lda, swapped.ldb);
  swapped.beta = {1, 0};
  if (what.symmetry == SG_SYMMETRY_HERMITIAN) swapped.alpha.im = -swapped.alpha.im;
  return run_gemm(rectangle_of(swapped, row, rows, col, cols), nullptr, space);
}

sg_status run_update(const sg_backend_symmetric &what, workspace &space) noexcept {
  const double multiplications = static_cast<double>(what.n) * static_cast<double>(what.k);
  return in_panels(what.n, multiplications, space, [&](std::int64_t first, std::int64_t width) {
    const std::int64_t end = first + width;
    const std::int64_t to_row = what.op == SG_TRANSPOSE_N ? 1 : what.lda,
                       to_row_b = what.op == SG_TRANSPOSE_N ? 1 : what.ldb;
    sg_backend_symmetric block = what;
    block.m = block.n = width;
    block.a = moved(what.a, first * to_row, what.type), block.b = moved(what.b, first * to_row_b, what.type);
    block.c = moved(what.c, first * (1 + what.ldc), what.type);
    const sg_status status = run_block(block);
    const bool is_lower = what.triangle == SG_TRIANGLE_LOWER;
    const std::int64_t row = is_lower ? end : 0, rows = is_lower ? what.n - end : first;
    return status == SG_STATUS_OK && rows > 0 ? run_rectangle(what, row, rows, first, width, space) : status;
  });
}

}  // namespace

// Without a product there is nothing to divide.
sg_status run_symmetric(const sg_backend_symmetric &what, workspace &space) noexcept {
  if (what.a == nullptr) return run_block(what);
  return what.kind == SG_BACKEND_SYMMETRIC_MULTIPLY ? run_product(what, space) : run_update(what, space);
}

}  // namespace sg::cpu
