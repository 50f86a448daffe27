// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <unordered_map>

#include "base/error.hpp"
#include "base/log.hpp"
#include "plan/gemm/candidate.hpp"
#include "plan/gemm/cost.hpp"
#include "plan/gemm/direct.hpp"
#include "plan/gemm/grouped.hpp"
#include "plan/gemm/resident_search.hpp"
#include "plan/layers/conv.hpp"
#include "plan/layers/linear.hpp"
#include "plan/streaming/downcast.hpp"
#include "plan/streaming/stream_search.hpp"

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

schedule plan_one(const problem &p, const plan_terms &terms) {
  return touches_host(p) ? plan_stream(p, terms) : plan_resident(p, terms);
}

// Groups repeat a few shapes.
struct problem_hash {
  std::size_t operator()(const problem &p) const noexcept {
    std::size_t hash = 0;
    for (std::int64_t x : {p.m, p.n, p.k, p.batch, p.a.ld, p.b.ld, p.c.ld, std::int64_t{p.a.type}})
      hash = (hash ^ std::size_t(x)) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
  }
};

void check_size(double commands, std::size_t problems) {
  const double most = std::max(double(most_asked_commands), 8.0 * double(problems));
  if (commands > most)
    throw error(SG_STATUS_OUT_OF_MEMORY, "a schedule of this group would have %.0f commands, the most is %.0f",
                commands, most);
}

schedule plan_together(const std::vector<problem> &problems, const plan_terms &terms) {
  double commands = 0;
  for (const problem &p : problems) commands += double(direct_commands(p));
  check_size(commands, problems.size());
  return build_grouped(problems, terms.model, terms.lanes);
}

schedule plan_one_by_one(const std::vector<problem> &problems, const plan_terms &terms) {
  std::unordered_map<problem, schedule, problem_hash> made;
  std::vector<const schedule *> parts;
  double commands = 0;
  for (const problem &p : problems) {
    auto known = made.find(p);
    if (known == made.end()) known = made.emplace(p, plan_one(p, terms)).first;
    parts.push_back(&known->second);
    commands += double(known->second.commands.size());
  }
  check_size(commands, problems.size());
  return chain(problems, parts, terms.memory_limit, terms.lanes);
}

schedule plan_group(const std::vector<problem> &problems, const plan_terms &terms) {
  const bool resident = std::none_of(problems.begin(), problems.end(), touches_host);
  const bool free_choice = terms.request.split == split_kind::automatic && terms.request.parts <= 1;
  best_schedule best(terms.model);
  if (resident && (free_choice || terms.request.split == split_kind::none)) best.offer(plan_together(problems, terms));
  // Splitting single problems pays only if there are too few of them to fill the cores.
  const bool few = problems.size() < 4 * std::size_t(terms.lanes) && terms.model.lanes_are_cores;
  if (best.empty() || (few && terms.request.split != split_kind::none)) best.offer(plan_one_by_one(problems, terms));
  return best.take();
}

std::shared_ptr<schedule> plan_layer(const std::vector<problem> &problems, const plan_terms &terms) {
  if (terms.request.layer == layer_kind::own)
    return std::make_shared<schedule>(terms.request.form->plan(terms.model, terms.lanes, terms.memory_limit));
  if (terms.request.layer != layer_kind::linear_backward) {
    auto plan = std::make_shared<schedule>(plan_conv(problems, terms));
    plan->bound_seconds = conv_bound(problems, *plan, terms.model);
    return plan;
  }
  auto plan = std::make_shared<schedule>(plan_linear_backward(problems, terms));
  plan->bound_seconds = linear_backward_bound(problems, terms.model, terms.request);
  return plan;
}

std::shared_ptr<schedule> plan_gemms(const std::vector<problem> &given, const plan_terms &terms) {
  std::vector<problem> problems;
  problems.reserve(given.size());
  for (const problem &p : given) problems.push_back(downcast_if_staged(p, terms.model));
  auto plan =
      std::make_shared<schedule>(problems.size() == 1 ? plan_one(problems[0], terms) : plan_group(problems, terms));
  plan->bound_seconds = bound_seconds(terms.model, problems);
  return plan;
}

void log_choice(const std::vector<problem> &problems, const device_model &model, const plan_request &request,
                const schedule &chosen) {
  const problem &p = problems.front();
  char what[120];
  const auto number = [](std::int64_t x) { return static_cast<long long>(x); };
  if (request.layer == layer_kind::linear_backward)
    std::snprintf(what, sizeof what, "the gradients of a linear layer");
  else if (request.layer == layer_kind::own)
    std::snprintf(what, sizeof what, "%s", request.form->description().c_str());
  else if (request.layer == layer_kind::conv || request.layer == layer_kind::conv_backward)
    std::snprintf(what, sizeof what, "%s of %lld channels and %lld x %lld windows",
                  request.layer == layer_kind::conv ? "a convolution" : "the gradients of a convolution",
                  number(request.conv->of.channels), number(request.conv->of.kernel_h),
                  number(request.conv->of.kernel_w));
  else if (problems.size() > 1)
    std::snprintf(what, sizeof what, "a group of %zu GEMMs", problems.size());
  else
    std::snprintf(what, sizeof what, "%lld x %lld x %lld %s%s", number(request.by_rows ? p.n : p.m),
                  number(request.by_rows ? p.m : p.n), number(p.k), name_of(p.a.type),
                  p.batch > 1 ? (", batch " + std::to_string(p.batch)).c_str() : "");
  const plan_request free = {.device = request.device,
                             .layer = request.layer,
                             .dy_is_a = {request.dy_is_a[0], request.dy_is_a[1]},
                             .conv = request.conv,
                             .form = request.form};
  const bool restricted = !(request == free);
  log_message(log_level::info, log_area::plan,
              "%s on %.64s: %s: predicted %.2f us, bound %.2f us, %zu commands, %lld bytes of device memory; %s", what,
              model.name.c_str(), chosen.strategy.c_str(), chosen.predicted_seconds * 1e6, chosen.bound_seconds * 1e6,
              chosen.commands.size(), number(chosen.device_bytes),
              restricted ? "the fastest that the request allows" : "the fastest by the device model");
}

// Moves a schedule planned for the first device: its lanes and device memory become another device's.
void move_to(schedule &s, device_index device) {
  for (command &c : s.commands) c.where.device = device;
  for (buffer &b : s.buffers)
    if (b.space == SG_MEMORY_DEVICE) b.space = memory_space::of_device(device);
}

}  // namespace

std::shared_ptr<const schedule> make_plan(const std::vector<problem> &given, const device_model &model,
                                          const plan_request &request) {
  if (given.empty()) throw error(SG_STATUS_INVALID_ARGUMENT, "there is no problem to plan");
  check(request);
  for (const problem &p : given)
    if (!p.no_multiply && gemm_rate_of(model, p.a.type, p.compute) <= 0)
      throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s GEMM", model.name.c_str(), name_of(p.a.type));
  const plan_terms terms = terms_of(model, request);
  const auto plan = request.layer == layer_kind::none ? plan_gemms(given, terms) : plan_layer(given, terms);
  if (plan->predicted_seconds == 0) plan->predicted_seconds = simulate(*plan, model).seconds;
  if (request.device != first_device) move_to(*plan, request.device);
  if (logs(log_level::info, log_area::plan)) log_choice(given, model, request, *plan);
  return plan;
}

std::shared_ptr<const schedule> make_plan(const std::vector<problem> &problems, const machine_model &machine,
                                          const plan_request &request) {
  if (number_of(request.device) >= machine.devices.size())
    throw error(SG_STATUS_INVALID_ARGUMENT, "device %zu of a machine that has %zu", number_of(request.device),
                machine.devices.size());
  return make_plan(problems, machine.device(request.device), request);
}

}  // namespace sg
