// SPDX-License-Identifier: Apache-2.0
// The operation of clamp.h, on one thread.
#include <algorithm>

#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
namespace {

// In the arithmetic's type; `dy` nullptr: the values, else the gradient. The result may be an operand. A NaN is in no
// order, so it stays, and its gradient is 0.
template <class Real>
void clamp(Real *to, const Real *x, const Real *dy, Real low, Real high, std::int64_t count) noexcept {
  if (dy != nullptr) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = low <= x[i] && x[i] <= high ? dy[i] : Real(0);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const Real raised = x[i] < low ? low : x[i];
    to[i] = raised > high ? high : raised;
  }
}

}  // namespace

sg_status run_clamp(const sg_backend_clamp &what, workspace &space) noexcept {
  const bool is_short = sum_type_of(what.type) != what.type;
  const std::int64_t size = element_size(what.type);
  constexpr std::int64_t step = 2048;  // elements of a column, which stay in the first-level cache
  alignas(64) float wide_x[step], wide_dy[step];
  poll end(space);
  const auto at = [size](const void *of, std::int64_t element) {
    return of == nullptr ? nullptr : static_cast<const char *>(of) + element * size;
  };
  const auto run = [&]<class Real>(void *to, const void *x, const void *dy, std::int64_t count) {
    clamp(static_cast<Real *>(to), static_cast<const Real *>(x), static_cast<const Real *>(dy), Real(what.low),
          Real(what.high), count);
  };
  for (std::int64_t j = 0; j < what.n; ++j)
    for (std::int64_t i = 0; i < what.m; i += step) {
      const std::int64_t count = std::min(step, what.m - i);
      const void *x = at(what.x, i + j * what.ldx), *dy = at(what.dy, i + j * what.lddy);
      void *const y = static_cast<char *>(what.y) + (i + j * what.ldy) * size;
      if (is_short) {
        widen(wide_x, x, what.type, count);
        if (dy != nullptr) widen(wide_dy, dy, what.type, count), dy = wide_dy;
        run.operator()<float>(wide_x, wide_x, dy, count);
        narrow(y, what.type, wide_x, count);
      } else if (what.type == SG_DTYPE_F64) {
        run.operator()<double>(y, x, dy, count);
      } else {
        run.operator()<float>(y, x, dy, count);
      }
      if (end.stops(count)) return SG_STATUS_CANCELLED;
    }
  return SG_STATUS_OK;
}

}  // namespace sg::cpu
