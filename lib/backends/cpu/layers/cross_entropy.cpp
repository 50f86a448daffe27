// SPDX-License-Identifier: Apache-2.0
// The operations of cross_entropy.h, on one thread.
#include <cmath>

#include "backends/common/rows.hpp"
#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/simd/simd.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
namespace {

template <class Real>
sg_status cross_entropy_rows(const sg_backend_cross_entropy &what, workspace &space) noexcept {
  const std::int64_t n = what.cols, size = element_size(what.type);
  const sg_dtype wide = sum_type_of(what.type);
  const auto bytes = static_cast<std::size_t>(n) * sizeof(Real);
  auto *const exponentials = static_cast<Real *>(space.get(scratch::sums, bytes));
  auto *const widened = static_cast<Real *>(space.get(scratch::converted, wide == what.type ? 1 : bytes));
  if (exponentials == nullptr || widened == nullptr) return SG_STATUS_OUT_OF_MEMORY;
  const auto store = [&](void *to, std::int64_t at, const Real *values, std::int64_t count) {
    narrow(static_cast<char *>(to) + at * size, what.type, values, count);
  };
  poll end(space);
  for (std::int64_t i = 0; i < what.rows; ++i) {
    const auto *x = reinterpret_cast<const Real *>(static_cast<const char *>(what.x) + i * what.x_row * size);
    if (wide != what.type) widen(widened, x, what.type, n), x = widened;
    const std::int64_t index = index_at(what.indices, i, what.index_bytes);
    const bool exists = index >= 0 && index < n;
    Real loss = 0, sum = 0;
    if (exists) {
      const Real most = extreme_without_nan<true>(x, n), chosen = x[index];
      simd().layers->softmax(wide, exponentials, x, n, false);
      sum = pairwise_sum<Real>(0, n, [exponentials](std::int64_t j) { return exponentials[j]; });
      loss = std::log(sum) + (most - chosen);
    }
    if (what.y != nullptr) {
      store(what.y, i * what.y_row, &loss, 1);
    } else if (exists) {
      Real factor = 1;
      if (what.dy != nullptr) widen(&factor, static_cast<const char *>(what.dy) + i * what.dy_row * size, what.type, 1);
      factor *= static_cast<Real>(what.scale);
      for (std::int64_t j = 0; j < n; ++j)
        exponentials[j] = factor * (exponentials[j] / sum - Real(j == index ? 1 : 0));
      store(what.dx, i * what.dx_row, exponentials, n);
    } else {
      for (std::int64_t j = 0; j < n; ++j) exponentials[j] = 0;
      store(what.dx, i * what.dx_row, exponentials, n);
    }
    if (end.stops(n)) return SG_STATUS_CANCELLED;
  }
  return SG_STATUS_OK;
}

}  // namespace

sg_status run_cross_entropy(const sg_backend_cross_entropy &what, workspace &space) noexcept {
  return what.type == SG_DTYPE_F64 ? cross_entropy_rows<double>(what, space) : cross_entropy_rows<float>(what, space);
}

}  // namespace sg::cpu
