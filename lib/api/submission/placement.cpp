// SPDX-License-Identifier: Apache-2.0
#include "api/submission/placement.hpp"

#include "base/error.hpp"

namespace sg {

void require_device_of_stream(const operand_set &operands, const checked_submit &order) {
  const std::optional<device_index> wanted = order.device();
  if (!wanted) return;
  for (const operand_set::bound &each : operands.operands())
    if (each.space == SG_MEMORY_DEVICE && each.space.device() != *wanted)
      throw error(SG_STATUS_INVALID_ARGUMENT,
                  "@submit->stream is of device %zu of the context, and @%s->%s (%p) is in memory of device %zu",
                  number_of(*wanted), each.desc, each.name, each.given, number_of(each.space.device()));
}

std::optional<device_index> device_of_operands(const operand_set &operands, const checked_submit &order) {
  const operand_set::bound *first = nullptr;
  for (const operand_set::bound &each : operands.operands()) {
    if (each.space != SG_MEMORY_DEVICE) continue;
    if (!first) first = &each;
    if (each.space == first->space) continue;
    throw error(SG_STATUS_INVALID_ARGUMENT,
                "@%s->%s (%p) is in memory of device %zu of the context, and @%s->%s (%p) of device %zu", first->desc,
                first->name, first->given, number_of(first->space.device()), each.desc, each.name, each.given,
                number_of(each.space.device()));
  }
  require_device_of_stream(operands, order);
  return first ? first->space.device() : order.device();
}

std::shared_ptr<const program> plan_on(context &on, const form &what, plan_request request,
                                       std::optional<device_index> device) {
  request.device = device ? *device : on.least_busy();
  return on.plan_for(what, request);
}

bool stays_on_device(const context &on, std::optional<device_index> device, const program &plan) noexcept {
  return device || plan.is_spread() || on.devices().size() == 1;
}

}  // namespace sg
