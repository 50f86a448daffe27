// SPDX-License-Identifier: Apache-2.0
// The choice between the ways to compute an attention, and the size of its workspace.
#include <algorithm>

#include "base/error.hpp"
#include "plan/layers/attention.hpp"
#include "plan/layers/within_limit.hpp"

namespace sg {

namespace {

using attention_builder = schedule (*)(const attention_form &, const device_model &, int);

schedule plan_blocks(const attention_form &f, const device_model &model, int lanes, std::int64_t memory_limit,
                     attention_builder build) {
  return schedule_within(memory_limit, f.workspace > 0 ? f.workspace : usual_attention_workspace(model, lanes),
                         f.workspace == 0, "an attention", [&](std::int64_t workspace) {
                           attention_form tried = f;
                           tried.workspace = workspace;
                           return build(tried, model, lanes);
                         });
}

}  // namespace

schedule plan_attention(const attention_form &f, const device_model &model, int lanes, std::int64_t memory_limit) {
  if (f.by_device && f.keys > 0 && suits_fused(f, model)) return build_fused_attention(f, model);
  return plan_blocks(f, model, lanes, memory_limit, build_attention);
}

schedule plan_attention_backward(const attention_form &f, const device_model &model, int lanes,
                                 std::int64_t memory_limit) {
  return plan_blocks(f, model, lanes, memory_limit, build_attention_backward);
}

std::size_t hash_of(const attention_form &f) noexcept {
  std::size_t hash = 0;
  for (const std::int64_t x : {f.batch, f.heads, f.kv_heads, f.queries, f.keys, f.width, f.value_width, f.q.token,
                               f.k.token, f.mask_offset, f.workspace, std::int64_t{f.type} << 1 | f.causal})
    hash = (hash ^ static_cast<std::size_t>(x)) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

std::string description_of(const attention_form &f) {
  return "an attention of " + std::to_string(f.batch) + " x " + std::to_string(f.heads) + " heads, " +
         std::to_string(f.queries) + " queries and " + std::to_string(f.keys) + " keys, " + name_of(f.type);
}

}  // namespace sg
