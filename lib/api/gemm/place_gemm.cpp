// SPDX-License-Identifier: Apache-2.0
#include "api/gemm/place_gemm.hpp"

#include <bit>
#include <vector>

#include "api/submission/placement.hpp"
#include "base/error.hpp"
#include "plan/gemm/gemm_form.hpp"

namespace sg {

namespace {

problem seen_from(const context &on, device_index device, problem shape) noexcept {
  for (operand *each : {&shape.a, &shape.b, &shape.c, &shape.bias})
    each->space = on.memory().seen_from(device, each->space);
  return shape;
}

std::shared_ptr<const program> plan_from(context &on, std::span<const problem> shapes, const plan_request &request) {
  std::vector<problem> seen;
  for (const problem &each : shapes) seen.push_back(seen_from(on, request.device, each));
  return on.plan_for(gemm_form(std::span<const problem>(seen)), request);
}

// Of operands in device memory, results first; empty: there are none.
std::optional<device_index> device_of_results(std::span<const problem> shapes) noexcept {
  const auto is_read = [](const problem &of, const operand problem::*which) {
    return which == &problem::c || (which == &problem::bias ? of.has_bias() : !of.no_multiply);
  };
  for (const auto which : {&problem::c, &problem::a, &problem::b, &problem::bias})
    for (const problem &each : shapes)
      if (is_read(each, which) && (each.*which).space == SG_MEMORY_DEVICE) return (each.*which).space.device();
  return std::nullopt;
}

void require_devices(const context &on, std::uint64_t devices) {
  const std::size_t count = on.devices().size();
  if (count < 64 && devices >> count != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "devices is 0x%llx, and the machine has %zu",
                static_cast<unsigned long long>(devices), count);
}

// With `wanted`, or operands in device memory, one device; otherwise the planner's choice among those that work.
placed_gemm placed(context &on, std::span<const problem> shapes, plan_request request,
                   std::optional<device_index> wanted) {
  const bool is_named = request.names_devices();
  if (on.devices().size() == 1 && !is_named) return {on.plan_for(gemm_form(shapes), request), true};
  const auto of_operands = device_of_results(shapes);
  const auto device = wanted ? wanted : of_operands;
  if (device && !is_named) {
    request.device = *device;
    return {plan_from(on, shapes, request), true};
  }
  require_devices(on, request.devices);
  if (request.devices == 0) request.devices = on.working_devices();
  if (request.device_count > 1 || (!of_operands && (is_named || shapes.size() == 1))) {
    auto plan = on.plan_for(gemm_form(shapes), request);
    if (plan->is_spread()) return {std::move(plan), true};
  }
  // One device of those that may do it.
  const std::uint64_t among = request.devices;
  request.devices = 0, request.device_count = 0;
  request.device = device && (among >> number_of(*device) & 1) ? *device : on.least_busy(among);
  auto plan = plan_from(on, shapes, request);
  return {std::move(plan), std::has_single_bit(among)};
}

}  // namespace

placed_gemm place_gemm(context &on, std::span<const problem> shapes, plan_request request,
                       const checked_submit &order) {
  if (const auto *const known = order.plan_to_run()) {
    const program &plan = **known;
    std::vector<problem> seen;
    for (const problem &each : shapes) seen.push_back(plan.is_spread() ? each : seen_by(on, plan, each));
    order.require_as_planned(gemm_form(std::span<const problem>(seen)), "operation->desc");
    return {*known, false};
  }
  return placed(on, shapes, request, order.device());
}

std::shared_ptr<const program> plan_gemm(context &on, const problem &shape, plan_request request) {
  return placed(on, {&shape, 1}, request, std::nullopt).plan;
}

problem seen_by(const context &on, const program &plan, problem shape) noexcept {
  return seen_from(on, plan.device(), shape);
}

}  // namespace sg
