// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm/gemm_form.hpp"

#include <algorithm>
#include <cstdio>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "plan/gemm/resident/candidate.hpp"
#include "plan/gemm/resident/cost.hpp"
#include "plan/gemm/resident/direct.hpp"
#include "plan/gemm/resident/grouped.hpp"
#include "plan/gemm/resident/resident_search.hpp"
#include "plan/gemm/spread/spread.hpp"
#include "plan/gemm/streaming/downcast.hpp"
#include "plan/gemm/streaming/stream_search.hpp"

namespace sg {
namespace {

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

}  // namespace

void require_gemm(const problem &p, const device_model &model) {
  if (!p.no_multiply && gemm_rate_of(model, p.a.type, p.compute) <= 0)
    throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s GEMM", model.name.c_str(), name_of(p.a.type));
}

std::uint64_t gemm_form::hash() const noexcept {
  hasher mixed;
  for (const problem &each : problems_) mixed << each;
  return mixed.value();
}

bool gemm_form::equals(const form &other) const noexcept {
  return std::ranges::equal(problems_, static_cast<const gemm_form &>(other).problems_);
}

std::shared_ptr<const form> gemm_form::share() const {
  return std::make_shared<const gemm_form>(std::vector<problem>(problems_.begin(), problems_.end()));
}

gemm_summary gemm_form::gemms() const noexcept {
  const problem &first = problems_.front();
  gemm_summary made{first.m, first.n, first.k, 0, problems_.size()};
  for (const problem &each : problems_) made.items += each.batch;
  return made;
}

std::string gemm_form::describe(const plan_request &request) const {
  if (problems_.size() > 1) return "a group of " + std::to_string(problems_.size()) + " GEMMs";
  const problem &p = problems_.front();
  char text[120];
  const auto number = [](std::int64_t x) { return static_cast<long long>(x); };
  std::snprintf(text, sizeof text, "%lld x %lld x %lld %s%s", number(request.by_rows ? p.n : p.m),
                number(request.by_rows ? p.m : p.n), number(p.k), name_of(p.a.type),
                p.batch > 1 ? (", batch " + std::to_string(p.batch)).c_str() : "");
  return text;
}

schedule gemm_form::plan(const plan_terms &terms) const {
  if (problems_.empty()) throw error(SG_STATUS_INVALID_ARGUMENT, "there is no problem to plan");
  std::vector<problem> problems;
  problems.reserve(problems_.size());
  for (const problem &each : problems_) {
    require_gemm(each, terms.model);
    problems.push_back(downcast_if_staged(each, terms.model));
  }
  schedule made = problems.size() == 1 ? plan_one(problems[0], terms) : plan_group(problems, terms);
  const time_bound bound = bound_and_limit(terms.model, problems);
  made.bound_seconds = bound.seconds;
  made.bound_limit = bound.limit;
  return made;
}

std::optional<schedule> gemm_form::spread(const machine_model &machine, std::span<const device_index> devices,
                                          const plan_request &request,
                                          std::span<const std::int64_t> memory_limits) const {
  if (problems_.size() != 1) return std::nullopt;
  for (const device_index each : devices) require_gemm(problems_.front(), machine.device(each));
  const problem p = downcast_if_staged(problems_.front(), machine.device(devices.front()));
  return plan_spread(p, machine, devices, request, memory_limits);
}

std::vector<alternative> gemm_form::alternatives(const device_model &model, const plan_request &request) const {
  return alternatives_to({problems_.begin(), problems_.end()}, model, request, true, [](std::vector<problem> changed) {
    return std::make_shared<const gemm_form>(std::move(changed));
  });
}

}  // namespace sg
