// SPDX-License-Identifier: Apache-2.0
// The operation of triangular.h, on one thread: by CBLAS, or in plain loops, some columns or rows of B at a time.
#include <algorithm>

#include "backends/common/triangles.hpp"
#include "backends/cpu/worker/workspace.hpp"
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
  constexpr std::int64_t width = 256;  // between polls
  const bool is_left = what.side == SG_SIDE_LEFT;
  const std::int64_t count = is_left ? what.n : what.m;
  for (std::int64_t first = 0; first < count; first += width) {
    if (first > 0 && space.is_stopped()) return SG_STATUS_CANCELLED;
    sg_backend_triangular panel = what;
    (is_left ? panel.n : panel.m) = std::min(width, count - first);
    panel.b = static_cast<char *>(what.b) + first * (is_left ? what.ldb : 1) * element_size(what.type);
    if (const sg_status status = run_panel(panel); status != SG_STATUS_OK) return status;
  }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
