// SPDX-License-Identifier: Apache-2.0
// The last step of an operation's submission: its operands and its form are checked.
#pragma once

#include <utility>

#include "api/operands/operand_set.hpp"
#include "api/submission/cached_submission.hpp"
#include "api/submission/placement.hpp"
#include "api/submission/submission.hpp"

namespace sg {

struct planned_operation {
  sg_operation operation;
  const form &what;
  bool does_nothing = false;
  const form *fixed = nullptr;  // what updates of a recorded one keep; nullptr: `what`
};

// The request of an operation that has no plan options of its own; a plan made ahead has two of them, and what was
// recorded by it keeps them in updates.
inline plan_request usual_request(const checked_submit &order) noexcept {
  plan_request request;
  request.streams = order.most_lanes();
  if (!order.plan_to_run() && !order.makes_plan() && !order.updates()) return request;
  operand_spaces unused;
  const plan_request wanted = order.wanted(unused);
  request.streams = wanted.streams;
  request.memory_limit = wanted.memory_limit;
  return request;
}

// Submits or records it. `name`: the descriptor's name in messages. On the devices that the request names, or on one.
template <class Desc>
void submit_operands(context &on, operand_set &operands, const Desc &desc, const char *name,
                     const planned_operation &planned, const plan_request &request, checked_submit &order,
                     sg_job **out_job) {
  if (order.records()) {
    order.note_request(request);
    order.note(planned.operation, planned.fixed ? *planned.fixed : planned.what, name);
  }
  std::shared_ptr<const program> plan;
  const bool on_several = request.names_devices();
  const std::optional<device_index> device = on_several ? std::nullopt : device_of_operands(operands, order);
  if (const auto *const known = order.plan_to_run(); known && !planned.does_nothing) {
    order.require_as_planned(planned.what, name);
    plan = *known;
  } else if (!planned.does_nothing) {
    plan = on_several ? on.plan_for(planned.what, request) : plan_on(on, planned.what, request, device);
  }
  ref<job> work = on.new_job();
  if (!plan || plan->schedule->commands.empty()) return order.go(std::move(work), nullptr, 0, out_job);
  if (stays_on_device(on, device, *plan))
    remember_submission(on, planned.operation, &desc, sizeof desc, operands, plan, order);
  work->give_work(plan);
  work->operands = std::move(operands.where());
  order.go(std::move(work), operands.accesses().data(), operands.accesses().size(), out_job);
}

}  // namespace sg
