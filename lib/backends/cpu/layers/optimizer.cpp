// SPDX-License-Identifier: Apache-2.0
// The operations of optimizer.h, on one thread.
#include <algorithm>

#include "backends/common/rows.hpp"
#include "backends/cpu/elements/pack.hpp"
#include "backends/cpu/worker/poll.hpp"
#include "layers.hpp"

namespace sg::cpu {
namespace {

template <class Real>
sg_status step(const sg_backend_optimizer &what, workspace &space) noexcept {
  constexpr std::int64_t most = 2048;  // elements that stay in the first-level cache
  alignas(64) Real of_parameters[most], of_gradient[most];
  const bool is_short = sum_type_of(what.type) != what.type;
  const std::int64_t size = element_size(what.type);
  poll end(space);
  for (std::int64_t i = 0; i < what.elements; i += most) {
    const std::int64_t count = std::min(most, what.elements - i);
    char *const parameters = static_cast<char *>(what.parameters) + i * size;
    const char *const gradient = static_cast<const char *>(what.gradient) + i * size;
    const auto state = [i](void *of) { return of == nullptr ? nullptr : static_cast<Real *>(of) + i; };
    if (is_short) {
      widen(of_parameters, parameters, what.type, count);
      widen(of_gradient, gradient, what.type, count);
      optimize(what, of_parameters, of_gradient, state(what.first), state(what.second), count);
      narrow(parameters, what.type, of_parameters, count);
    } else {
      optimize(what, reinterpret_cast<Real *>(parameters), reinterpret_cast<const Real *>(gradient), state(what.first),
               state(what.second), count);
    }
    if (end.stops(count)) return SG_STATUS_CANCELLED;
  }
  return SG_STATUS_OK;
}

}  // namespace

sg_status run_optimizer(const sg_backend_optimizer &what, workspace &space) noexcept {
  return what.type == SG_DTYPE_F64 ? step<double>(what, space) : step<float>(what, space);
}

}  // namespace sg::cpu
