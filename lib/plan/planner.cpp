// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {
namespace {

void check(const plan_request &r) {
  const struct {
    std::int64_t value;
    const char *name;
  } fields[] = {{r.parts, "parts"},   {r.streams, "streams"}, {r.memory_limit, "memory_limit"},
                {r.tile_m, "tile_m"}, {r.tile_n, "tile_n"},   {r.tile_k, "tile_k"}};
  for (const auto &field : fields)
    if (field.value < 0)
      throw error(SG_STATUS_INVALID_ARGUMENT, "%s must not be negative, it is %lld", field.name,
                  static_cast<long long>(field.value));
  if (r.split == split_kind::none && r.parts > 1)
    throw error(SG_STATUS_INVALID_ARGUMENT, "%d parts were asked for, and no split", int(r.parts));
}

plan_terms terms_of(const device_model &model, const plan_request &request) {
  // Without a limit, leave some memory to the driver and to other processes.
  const std::int64_t most = model.usable_memory(), wanted = request.memory_limit;
  const std::int64_t otherwise = model.memory_limit > 0 ? most : most - most / 16;
  return {model, request, request.streams > 0 ? std::min(request.streams, model.compute_lanes) : model.compute_lanes,
          wanted > 0 ? std::min(wanted, most) : otherwise};
}

void log_choice(const form &what, const device_model &model, const plan_request &request, const schedule &chosen) {
  const bool restricted = !(request == plan_request{.device = request.device});
  log_message(log_level::info, log_area::plan,
              "%.160s on %.64s: %s: predicted %.2f us, bound %.2f us, %zu commands, %lld bytes of device memory; %s",
              what.describe(request).c_str(), model.name.c_str(), chosen.strategy.c_str(),
              chosen.predicted_seconds * 1e6, chosen.bound_seconds * 1e6, chosen.commands.size(),
              static_cast<long long>(chosen.device_bytes),
              restricted ? "the fastest that the request allows" : "the fastest by the device model");
}

// Moves a schedule planned for the first device: its lanes and device memory become another device's.
void move_to(schedule &s, device_index device) {
  for (command &c : s.commands) c.where.device = device;
  for (buffer &b : s.buffers) {
    if (b.space == SG_MEMORY_DEVICE) b.space = memory_space::of_device(device);
    if (b.kind == buffer_kind::staging) b.space = memory_space::staging_of(device);
  }
}

}  // namespace

std::shared_ptr<const schedule> make_plan(const form &what, const device_model &model, const plan_request &request) {
  check(request);
  auto plan = std::make_shared<schedule>(what.plan(terms_of(model, request)));
  if (plan->predicted_seconds == 0) plan->predicted_seconds = simulate(*plan, model).seconds;
  if (request.device != first_device) move_to(*plan, request.device);
  if (logs(log_level::info, log_area::plan)) log_choice(what, model, request, *plan);
  return plan;
}

std::shared_ptr<const schedule> make_plan(const form &what, const machine_model &machine, const plan_request &request) {
  if (number_of(request.device) >= machine.devices.size())
    throw error(SG_STATUS_INVALID_ARGUMENT, "device %zu of a machine that has %zu", number_of(request.device),
                machine.devices.size());
  return make_plan(what, machine.device(request.device), request);
}

}  // namespace sg
