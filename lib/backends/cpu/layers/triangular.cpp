// SPDX-License-Identifier: Apache-2.0
// The operation of triangular.h, on one thread: by CBLAS, or in plain loops, some columns or rows of B at a time.
#include "backends/common/triangles.hpp"
#include "backends/cpu/worker/panels.hpp"
#ifdef SG_CPU_CBLAS
#include "backends/cpu/gemm/cblas_triangles.hpp"
#endif

namespace sg::cpu {
namespace {

sg_status run_panel(const sg_backend_triangular &what) noexcept {
#ifdef SG_CPU_CBLAS
  if (cblas_takes(what)) return cblas_triangular(what);
#endif
  with_blas_type(what.type, [&]<class T>() {
    compute_triangular(what, static_cast<const T *>(what.a), static_cast<T *>(what.b));
  });
  return SG_STATUS_OK;
}

}  // namespace

sg_status run_triangular(const sg_backend_triangular &what, workspace &space) noexcept {
  const bool is_left = what.side == SG_SIDE_LEFT;
  const auto order = static_cast<double>(is_left ? what.m : what.n);
  return in_panels(is_left ? what.n : what.m, order * order / 2, space, [&](std::int64_t first, std::int64_t width) {
    sg_backend_triangular panel = what;
    (is_left ? panel.n : panel.m) = width;
    panel.b = static_cast<char *>(what.b) + first * (is_left ? what.ldb : 1) * element_size(what.type);
    return run_panel(panel);
  });
}

}  // namespace sg::cpu
