// SPDX-License-Identifier: Apache-2.0
// The gradients of norms, on one thread, row by row.
#include <algorithm>

#include "backends/common/rows.hpp"
#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
namespace {

template <class Real>
sg_status norm_gradients(const sg_backend_norm_backward &what, workspace &space) noexcept {
  const std::int64_t n = what.cols, size = element_size(what.type);
  const bool is_short = sum_type_of(what.type) != what.type;
  auto *const copies =
      static_cast<Real *>(space.get(scratch::converted, static_cast<std::size_t>(is_short ? 5 * n : n) * sizeof(Real)));
  if (copies == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  const auto read = [&](const void *from, std::int64_t first, std::int64_t copy) {
    if (from == nullptr) return static_cast<const Real *>(nullptr);
    const char *const at = static_cast<const char *>(from) + first * size;
    if (is_short) widen(copies + copy * n, at, what.type, n);
    return is_short ? copies + copy * n : reinterpret_cast<const Real *>(at);
  };
  const Real *const gamma = read(what.gamma, 0, 0);
  poll end(space);
  for (std::int64_t i = 0; i < what.rows; ++i) {
    const Real *const dy = read(what.dy, i * what.dy_row, 1), *const x = read(what.x, i * what.x_row, 2);
    char *const dx = static_cast<char *>(what.dx) + i * what.dx_row * size;
    Real *const to = is_short ? copies + 3 * n : reinterpret_cast<Real *>(dx);
    const std::int64_t group = i / what.group_rows;
    Real *const products =
        what.products == nullptr ? nullptr : static_cast<Real *>(what.products) + group * what.products_row;
    // dX may be dY itself.
    if (what.dy_sums != nullptr)
      add_to_group(what, i, static_cast<Real *>(what.dy_sums) + group * what.dy_sums_row, dy);
    Real *const of_row = products == nullptr || what.group_rows == 1 ? products : copies + (is_short ? 4 * n : 0);
    simd().layers->norm_gradient(sum_type_of(what.type), what.kind, to, of_row, dy, x, gamma, what.epsilon, n);
    if (of_row != products) add_to_group(what, i, products, of_row);
    if (is_short) narrow(dx, what.type, to, n);
    if (end.stops(n)) return SG_STATUS_CANCELLED;
  }
  return SG_STATUS_OK;
}

}  // namespace

sg_status run_norm_backward(const sg_backend_norm_backward &what, workspace &space) noexcept {
  return what.type == SG_DTYPE_F64 ? norm_gradients<double>(what, space) : norm_gradients<float>(what, space);
}

}  // namespace sg::cpu
