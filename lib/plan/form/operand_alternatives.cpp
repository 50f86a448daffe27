// SPDX-License-Identifier: Apache-2.0
#include "plan/form/operand_alternatives.hpp"

#include <algorithm>
#include <utility>

namespace sg {
namespace {

bool is_on_host(const operand &x) noexcept { return exists(x) && x.space.kind() != SG_MEMORY_DEVICE; }
bool is_pageable(const operand &x) noexcept { return exists(x) && x.space == SG_MEMORY_PAGEABLE; }
bool has_gaps(const operand &x) noexcept { return is_on_host(x) && x.cols > 1 && x.ld > x.rows; }

bool is_restricted(const plan_request &request) noexcept {
  plan_request free;
  free.device = request.device;
  free.latency = request.latency;
  free.by_rows = request.by_rows;
  free.memory_limit = request.memory_limit;
  return !(request == free);
}

}  // namespace

std::vector<alternative> alternatives_of_operands(const std::vector<operand> &operands, bool exact_f32,
                                                  const plan_request &request, const form_with &rebuild) {
  std::vector<alternative> all;
  const auto offer = [&](const char *title, bool (*concerns)(const operand &), auto &&change) {
    if (std::ranges::none_of(operands, concerns)) return;
    std::vector<operand> changed = operands;
    for (operand &each : changed)
      if (concerns(each)) change(each);
    all.push_back({title, rebuild(std::move(changed), std::nullopt), request});
  };
  if (is_restricted(request)) {
    plan_request free = request;
    free.split = split_kind::automatic;
    free.parts = free.streams = 0;
    free.tile_m = free.tile_n = free.tile_k = 0;
    all.push_back({"leave the split and the tiles to the planner", rebuild(operands, std::nullopt), free});
  }
  offer(to_pin, is_pageable, [](operand &x) { x.space = SG_MEMORY_PINNED; });
  offer("store the operands without gaps between their rows, or columns", has_gaps, [](operand &x) { x.ld = x.rows; });
  if (exact_f32) {
    all.push_back(
        {"allow tf32, if 3 decimal digits are enough (SG_COMPUTE_TF32)", rebuild(operands, SG_COMPUTE_TF32), request});
    all.push_back(
        {"allow 3xtf32, with the accuracy of f32 (SG_COMPUTE_3XTF32)", rebuild(operands, SG_COMPUTE_3XTF32), request});
  }
  offer(to_keep_on_device, is_on_host, [](operand &x) { x.space = SG_MEMORY_DEVICE; });
  return all;
}

}  // namespace sg
