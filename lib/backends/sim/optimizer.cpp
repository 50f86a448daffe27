// SPDX-License-Identifier: Apache-2.0
#include "optimizer.hpp"

#include "operations.hpp"

namespace sg::sim {

std::function<void()> work_of(const address_space &memory, const sg_backend_optimizer &what) {
  const auto found = [&](const void *at, sg_dtype type, const char *name) {
    return at ? memory.device_bytes(at, static_cast<std::uint64_t>(what.elements * element_size(type)), name) : nullptr;
  };
  std::byte *parameters = found(what.parameters, what.type, "the parameters of an optimizer");
  const std::byte *gradient = found(what.gradient, what.type, "the gradient of an optimizer");
  std::byte *first = found(what.first, sum_type_of(what.type), "the first moment of an optimizer");
  std::byte *second = found(what.second, sum_type_of(what.type), "the second moment of an optimizer");
  return [what, parameters, gradient, first, second] { run_optimizer(what, parameters, gradient, first, second); };
}

}  // namespace sg::sim
