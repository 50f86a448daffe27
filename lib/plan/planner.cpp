// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "ops/gemm.hpp"
#include "plan/gemm/spread/device_sets.hpp"
#include "plan/schedule/describe.hpp"
#include "plan/schedule/lanes.hpp"
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

// Moves a schedule planned for one device: its lanes and device memory become another device's. The form may have been
// made for a third one, as a stage's of a pipeline.
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
  if (request.device != first_device || devices_of(*plan).size() == 1) move_to(*plan, request.device);
  if (logs(log_level::info, log_area::plan)) log_choice(what, model, request, *plan);
  return plan;
}

namespace {

std::vector<device_index> devices_named(const machine_model &machine, const plan_request &request) {
  std::vector<device_index> all;
  const std::size_t count = machine.devices.size();
  for (std::size_t i = 0; i < count; ++i)
    if (request.devices == 0 || (i < 64 && (request.devices >> i & 1))) all.push_back(device_index(i));
  if (count < 64 && request.devices >> count != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "devices is 0x%llx, and the machine has %zu",
                static_cast<unsigned long long>(request.devices), count);
  if (request.device_count < 0 || std::size_t(request.device_count) > all.size())
    throw error(SG_STATUS_INVALID_ARGUMENT, "device_count is %d; it must be from 0 to %zu", int(request.device_count),
                all.size());
  return all;
}

// Several devices must promise so much of one device's time, and shorter work is not worth their coordination. From
// pageable memory they must promise more, and most where nobody has measured what the workers of all reach together: on
// two H200 of one host these took up to 1.3 times the time of measured rates, and up to twice that of each device's.
constexpr double worth_several = 0.97, worth_several_staged = 0.75, worth_several_unmeasured = 0.65,
                 worth_several_seconds = 1e-3;

// The part of one device's time that several must promise.
double worth_beside(const schedule &of_one, const machine_model &machine) {
  if (of_one.staging_bytes == 0) return worth_several;
  return machine.staging.empty() ? worth_several_unmeasured : worth_several_staged;
}

// 2, 4, ..., all.
std::size_t next_count(std::size_t count, std::size_t all) {
  return count < all ? std::min(2 * count, all) : count + 1;
}

// A device with a smaller share of the arithmetic is not worth what the others wait for it.
constexpr double least_share = 0.05;

double share_of(const schedule &s, device_index device) {
  double own = 0, all = 0;
  for (const command &c : s.commands) {
    const auto *gemm = c.as<ops::gemm>();
    if (!gemm) continue;
    const double work = double(gemm->m) * double(gemm->n) * double(gemm->k) * double(c.views[ops::gemm::c].items);
    all += work;
    if (c.where.device == device) own += work;
  }
  return all > 0 ? own / all : 1;
}

std::vector<left_out_device> slow_ones(const schedule &s, std::span<const device_index> set) {
  std::vector<left_out_device> slow;
  for (const device_index each : set)
    if (const double share = share_of(s, each); share < least_share) slow.push_back({each, share, s.predicted_seconds});
  return slow;
}

// On one device, or on 2, 4, ..., or all of those that the request names.
std::shared_ptr<const schedule> plan_on_several(const form &what, const machine_model &machine,
                                                const plan_request &request) {
  const std::vector<device_index> among = devices_named(machine, request);
  const auto wanted = std::size_t(request.device_count);
  std::shared_ptr<const schedule> best;
  if (wanted <= 1) {
    plan_request one = request;
    one.devices = 0, one.device_count = 0;
    one.device = best_set(machine, among, 1).front();
    best = make_plan(what, machine.device(one.device), one);
    if (wanted == 1 || among.size() == 1 || best->predicted_seconds < worth_several_seconds) return best;
  }
  std::vector<std::int64_t> limits;
  for (const device_model &each : machine.devices) limits.push_back(terms_of(each, request).memory_limit);
  double fastest = best ? worth_beside(*best, machine) * best->predicted_seconds : HUGE_VAL;
  const auto offer = [&](schedule &&made) {
    if (made.predicted_seconds >= fastest) return;
    fastest = made.predicted_seconds;
    best = std::make_shared<const schedule>(std::move(made));
  };
  std::vector<left_out_device> left_out;
  for (std::size_t count = wanted > 0 ? wanted : 2; count <= among.size();
       count = wanted > 0 ? among.size() + 1 : next_count(count, among.size())) {
    const std::vector<device_index> set = best_set(machine, among, count);
    auto made = what.spread(machine, set, request, limits);
    if (!made) continue;
    std::vector<left_out_device> slow;
    if (wanted == 0) slow = slow_ones(*made, set);
    offer(std::move(*made));
    std::vector<device_index> others = set;
    std::erase_if(others, [&](device_index each) {
      return std::any_of(slow.begin(), slow.end(), [&](const left_out_device &x) { return x.device == each; });
    });
    if (!slow.empty() && others.size() > 1)
      if (auto without = what.spread(machine, others, request, limits)) offer(std::move(*without));
    if (!slow.empty()) left_out = std::move(slow);
  }
  if (!best)
    throw error(SG_STATUS_UNSUPPORTED, "%.160s cannot be computed by %zu devices", what.describe(request).c_str(),
                wanted);
  const std::vector<device_index> used = devices_of(*best);
  std::erase_if(left_out,
                [&](const left_out_device &x) { return std::find(used.begin(), used.end(), x.device) != used.end(); });
  if (!left_out.empty()) {
    schedule named = *best;
    named.left_out = left_out;
    best = std::make_shared<const schedule>(std::move(named));
  }
  if (!logs(log_level::info, log_area::plan)) return best;
  log_choice(what, machine.device(used.empty() ? first_device : used.front()), request, *best);
  for (const left_out_device &each : left_out)
    log_message(log_level::info, log_area::plan, "left out: %s", describe_left_out(each, machine).c_str());
  return best;
}

}  // namespace

std::shared_ptr<const schedule> make_plan(const form &what, const machine_model &machine, const plan_request &request) {
  if (number_of(request.device) >= machine.devices.size())
    throw error(SG_STATUS_INVALID_ARGUMENT, "device %zu of a machine that has %zu", number_of(request.device),
                machine.devices.size());
  if (!request.names_devices()) return make_plan(what, machine.device(request.device), request);
  check(request);
  return plan_on_several(what, machine, request);
}

std::vector<time_on_devices> times_on_more_devices(const form &what, const machine_model &machine,
                                                   const plan_request &request, const schedule &of_one) {
  constexpr double worth_naming = 0.9;
  std::vector<time_on_devices> found;
  const double alone = of_one.predicted_seconds;
  if (alone < worth_several_seconds || devices_of(of_one).size() != 1) return found;
  double fastest = std::min(worth_naming, worth_beside(of_one, machine)) * alone;
  plan_request more = request;
  more.device = first_device, more.devices = 0;
  for (std::size_t count = 2; count <= machine.devices.size(); count = next_count(count, machine.devices.size())) {
    more.device_count = std::int32_t(count);
    try {
      const double seconds = make_plan(what, machine, more)->predicted_seconds;
      if (seconds >= fastest) continue;
      found.push_back({more.device_count, seconds});
      fastest = worth_naming * seconds;
    } catch (const error &) {  // several devices cannot compute it, or not within the request's limits
    }
  }
  return found;
}

}  // namespace sg
