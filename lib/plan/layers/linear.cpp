// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/linear.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "plan/gemm/gemm_form.hpp"
#include "plan/gemm/resident/candidate.hpp"
#include "plan/gemm/resident/cost.hpp"
#include "plan/gemm/resident/grouped.hpp"
#include "plan/gemm/resident/resident_search.hpp"
#include "plan/gemm/streaming/stream_search.hpp"
#include "plan/layers/column_sums.hpp"
#include "plan/layers/linear_stream.hpp"
#include "plan/schedule/transfer.hpp"

namespace sg {
namespace {

bool uses_link(const linear_problems &p) {
  bool found = on_host(p.dy());
  for (const linear_part part : {input_gradient, weight_gradient, bias_gradient_part})
    found = found || (p.computes(part) && touches_host(p.all[part]));
  return found;
}

// Commands that move the operands on the host, about.
double moves_of(const linear_problems &p) {
  double all = 0;
  const auto add = [&all](const operand &x) {
    if (on_host(x) && x.rows > 0 && x.cols > 0)
      all += double(chunks_of(view{0, 0, 1, 0, x.ld, x.rows, x.cols}, size_of(x.type)));
  };
  add(p.dy());
  for (const linear_part part : {input_gradient, weight_gradient, bias_gradient_part})
    if (p.computes(part))
      for (const operand *x : {&p.all[part].a, &p.all[part].b, &p.all[part].c}) add(*x);
  return all;
}

void offer_streams(best_schedule &best, const linear_problems &p, const plan_terms &terms) {
  // Some forty schedules are built below, unless they are so large that planning would take long.
  constexpr double many_moves = 50'000;
  const double moves = moves_of(p);
  if (moves > double(most_asked_commands)) return;
  const auto offer = [&](const linear_blocks &blocks) {
    schedule made = build_linear_stream(p, blocks, terms.model, terms.lanes);
    return made.device_bytes <= terms.memory_limit ? best.offer(std::move(made)) : HUGE_VAL;
  };
  const std::int64_t most_rows = p.rows() / rows_of_group(p.rows());
  linear_blocks fastest;
  double least = HUGE_VAL;
  const std::int64_t fewest = moves > many_moves ? 8 : 1, most = moves > many_moves ? 8 : 64;
  for (std::int64_t blocks = fewest; blocks <= most; blocks *= 2)
    for (const bool packs : {false, true}) {
      const linear_blocks now{std::min(blocks, most_rows), std::min(blocks, p.inputs()), packs};
      if (packs && !has_short_runs(p, now)) continue;
      const double seconds = offer(now);
      if (seconds < least) least = seconds, fastest = now;
    }
  if (least == HUGE_VAL || moves > many_moves) return;
  const auto scaled = [](std::int64_t blocks, double factor, std::int64_t most) {
    return std::clamp(std::int64_t(double(blocks) * factor), std::int64_t(1), most);
  };
  for (const double of_rows : {0.5, 0.75, 1.0, 1.5, 2.0})
    for (const double of_inputs : {0.5, 0.75, 1.0, 1.5, 2.0})
      offer({scaled(fastest.rows, of_rows, most_rows), scaled(fastest.inputs, of_inputs, p.inputs()), fastest.packs});
}

// GEMMs that run side by side compete for caches: they must gain more than the model's inaccuracy.
constexpr double side_by_side_margin = 0.03;

// One result after the other, or side by side on several lanes.
void offer_chains(best_schedule &best, const linear_problems &p, const plan_terms &terms) {
  std::vector<schedule> parts(linear_parts);
  std::vector<const schedule *> each;
  for (const linear_part part : {input_gradient, weight_gradient, bias_gradient_part}) {
    const problem &one = p.all[part];
    if (p.computes(part))
      parts[part] = part == bias_gradient_part
                        ? build_column_sums(p.sums(), one.a, one.c, terms.model, terms.lanes, terms.memory_limit)
                    : touches_host(one) ? plan_stream(one, terms)
                                        : plan_resident(one, terms);
    each.push_back(&parts[part]);
  }
  const auto offer = [&](int lanes) {
    schedule made = chain(p.all, each, terms.memory_limit, lanes);
    made.strategy = lanes == 1 ? "linear backward" : "linear backward, " + std::to_string(lanes) + " lanes";
    best.offer(std::move(made));
  };
  if (terms.model.lanes_are_cores) return offer(terms.lanes);
  offer(1);
  best.require_margin(side_by_side_margin);
  if (terms.lanes > 2) offer(2);
  if (terms.lanes > 1) offer(terms.lanes);
}

double bound_of(const linear_problems &p, const device_model &model) {
  std::vector<problem> counted = p.all;
  // dY crosses the link once: for dX, else for dW, else for the sums.
  problem &weights = counted[weight_gradient];
  if (p.computes(input_gradient))
    (p.dy_is_a[1] ? weights.a : weights.b).space = SG_MEMORY_DEVICE;
  else if (!p.computes(weight_gradient))
    counted[bias_gradient_part].no_multiply = false;
  return bound_seconds(model, counted);
}

}  // namespace

schedule plan_of(const linear_problems &p, const plan_terms &terms) {
  for (const problem &each : p.all) require_gemm(each, terms.model);
  best_schedule best(terms.model);
  const bool has_products = p.computes(input_gradient) || p.computes(weight_gradient);
  const bool is_empty = p.rows() == 0 || p.outputs() == 0;
  if (uses_link(p) && has_products && !is_empty) offer_streams(best, p, terms);
  try {
    offer_chains(best, p, terms);
  } catch (const error &e) {
    if (e.status() != SG_STATUS_OUT_OF_MEMORY || best.empty()) throw;
  }
  schedule made = best.take();
  made.bound_seconds = bound_of(p, terms.model);
  return made;
}

std::uint64_t hash_of(const linear_problems &p) noexcept {
  hasher mixed;
  for (const problem &each : p.all) mixed << each;
  return (mixed << (std::int64_t{p.dy_is_a[0]} | std::int64_t{p.dy_is_a[1]} << 1)).value();
}

std::string description_of(const linear_problems &p) {
  return "the gradients of a linear layer of " + std::to_string(p.rows()) + " x " + std::to_string(p.inputs()) +
         " to " + std::to_string(p.outputs()) + ", " + name_of(p.dy().type);
}

std::vector<alternative> alternatives_to(const linear_problems &p, const device_model &model,
                                         const plan_request &request) {
  return alternatives_to(p.all, model, request, false, [&p](std::vector<problem> changed) {
    linear_problems made = p;
    made.all = std::move(changed);
    return std::make_shared<const form_of<linear_problems>>(std::move(made));
  });
}

}  // namespace sg
