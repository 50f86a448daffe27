// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "plan/candidate.hpp"
#include "plan/cost.hpp"
#include "plan/grouped.hpp"
#include "plan/resident_search.hpp"
#include "plan/stream_search.hpp"

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
  // Without a limit some of the memory is left to the driver and to others.
  const std::int64_t all = model.memory_bytes - model.memory_bytes / 16;
  return {model, request, request.streams > 0 ? std::min(request.streams, model.compute_lanes) : model.compute_lanes,
          request.memory_limit > 0 ? std::min(request.memory_limit, model.memory_bytes) : all};
}

schedule plan_one(const problem &p, const plan_terms &terms) {
  return touches_host(p) ? plan_stream(p, terms) : plan_resident(p, terms);
}

schedule plan_group(const std::vector<problem> &problems, const plan_terms &terms) {
  const bool resident = std::none_of(problems.begin(), problems.end(), touches_host);
  const bool free_choice = terms.request.split == split_kind::automatic && terms.request.parts <= 1;
  best_schedule best(terms.model);
  if (resident && (free_choice || terms.request.split == split_kind::none))
    best.offer(build_grouped(problems, terms.model, terms.lanes));
  // Splitting the problems themselves pays where there are too few of them to fill the cores.
  const bool few = problems.size() < 4 * std::size_t(terms.lanes) && terms.model.lanes_are_cores;
  if (!best.empty() && (!few || terms.request.split == split_kind::none)) return best.take();
  std::vector<schedule> parts;
  const problem *last = nullptr;
  for (const problem &p : problems) {
    parts.push_back(last && *last == p ? parts.back() : plan_one(p, terms));
    last = &p;
  }
  best.offer(chain(problems, parts, terms.memory_limit, terms.lanes));
  return best.take();
}

}  // namespace

std::shared_ptr<const schedule> make_plan(const std::vector<problem> &problems, const device_model &model,
                                          const plan_request &request) {
  if (problems.empty()) throw error(SG_STATUS_INVALID_ARGUMENT, "there is no problem to plan");
  check(request);
  for (const problem &p : problems)
    if (!p.no_product && gemm_rate_of(model, p.a.type, p.compute) <= 0)
      throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s product", model.name.c_str(), name_of(p.a.type));
  const plan_terms terms = terms_of(model, request);
  auto plan =
      std::make_shared<schedule>(problems.size() == 1 ? plan_one(problems[0], terms) : plan_group(problems, terms));
  if (plan->predicted_seconds == 0) plan->predicted_seconds = simulate(*plan, model).seconds;
  plan->bound_seconds = bound_seconds(model, problems);
  return plan;
}

}  // namespace sg
