// SPDX-License-Identifier: Apache-2.0
// The choice between the ways to compute an attention, and the size of its workspace.
#include <algorithm>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "plan/layers/attention.hpp"
#include "plan/layers/within_limit.hpp"

namespace sg {

namespace {

using attention_builder = schedule (*)(const attention_form &, const device_model &, int);

schedule plan_blocks(const attention_form &f, const plan_terms &terms, attention_builder build) {
  return schedule_within(terms.memory_limit,
                         f.workspace > 0 ? f.workspace : usual_attention_workspace(terms.model, terms.lanes),
                         f.workspace == 0, "an attention", [&](std::int64_t workspace) {
                           attention_form tried = f;
                           tried.workspace = workspace;
                           return build(tried, terms.model, terms.lanes);
                         });
}

}  // namespace

schedule plan_of(const attention_form &f, const plan_terms &terms) {
  if (f.by_device && f.keys > 0 && suits_fused(f, terms.model)) return build_fused_attention(f, terms.model);
  return plan_blocks(f, terms, build_attention);
}

schedule plan_of(const attention_backward_form &f, const plan_terms &terms) {
  return plan_blocks(f, terms, build_attention_backward);
}

std::uint64_t hash_of(const attention_form &f) noexcept {
  hasher mixed;
  for (const std::int64_t x : {f.batch, f.heads, f.kv_heads, f.queries, f.keys, f.width, f.value_width, f.q.token,
                               f.k.token, f.mask_offset, f.workspace, std::int64_t{f.type} << 1 | f.causal})
    mixed << x;
  return mixed.value();
}

std::string description_of(const attention_form &f) {
  return "an attention of " + std::to_string(f.batch) + " x " + std::to_string(f.heads) + " heads, " +
         std::to_string(f.queries) + " queries and " + std::to_string(f.keys) + " keys, " + name_of(f.type);
}

std::string description_of(const attention_backward_form &f) {
  return "the gradients of " + description_of(static_cast<const attention_form &>(f));
}

}  // namespace sg
