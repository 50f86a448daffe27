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

// The operands that both forms have, and the result of the first; `of_o`: the strides of O or of dO.
void visit_heads(attention_form &f, head_strides &of_o, access_mode mode_of_o, const operand_visitor &visit) {
  const auto add = [&](attention_parameter which, head_strides &x, bool of_query, std::int64_t width,
                       access_mode mode) {
    visit({static_cast<std::int32_t>(which),
           f.type,
           mode,
           width,
           {{{of_query ? f.queries : f.keys, x.token, &x.token},
             {of_query ? f.heads : f.kv_heads, x.head, &x.head},
             {f.batch, x.batch, &x.batch}}}},
          f.spaces[static_cast<std::size_t>(which)]);
  };
  using enum attention_parameter;
  add(q, f.q, true, f.width, access_mode::read);
  add(k, f.k, false, f.width, access_mode::read);
  add(v, f.v, false, f.value_width, access_mode::read);
  add(o, of_o, true, f.value_width, mode_of_o);
  const auto add_mask = [&](attention_parameter which, head_strides &x, sg_dtype type) {
    visit({static_cast<std::int32_t>(which),
           type,
           access_mode::read,
           f.keys,
           {{{f.queries, x.token, &x.token}, {f.heads, x.head, &x.head}, {f.batch, x.batch, &x.batch}}}},
          f.spaces[static_cast<std::size_t>(which)]);
  };
  const auto add_lengths = [&](attention_parameter which) {
    visit({static_cast<std::int32_t>(which), SG_DTYPE_I32, access_mode::read, f.batch, {}},
          f.spaces[static_cast<std::size_t>(which)]);
  };
  if (f.masks.has_bias) add_mask(bias, f.masks.bias, f.type);
  if (f.masks.has_visible) add_mask(visible, f.masks.visible, SG_DTYPE_I8);
  if (f.masks.has_query_lengths) add_lengths(query_lengths);
  if (f.masks.has_key_lengths) add_lengths(key_lengths);
  if (f.computes_dq) add(dq, f.dq, true, f.width, access_mode::write);
  if (f.computes_dk) add(dk, f.dk, false, f.width, access_mode::write);
  if (f.computes_dv) add(dv, f.dv, false, f.value_width, access_mode::write);
}

}  // namespace

void visit_operands(attention_form &f, const operand_visitor &visit) { visit_heads(f, f.o, access_mode::write, visit); }
void visit_operands(attention_backward_form &f, const operand_visitor &visit) {
  visit_heads(f, f.dout, access_mode::read, visit);
}

schedule plan_of(const attention_form &f, const plan_terms &terms) {
  if (f.by_device && f.keys > 0 && f.compute == SG_COMPUTE_EXACT) return build_fused_attention(f, terms.model);
  return plan_blocks(f, terms, build_attention);
}

schedule plan_of(const attention_backward_form &f, const plan_terms &terms) {
  if (f.by_device && f.keys > 0 && f.compute == SG_COMPUTE_EXACT) {
    schedule made = build_fused_attention(f, terms.model);
    if (made.device_bytes <= terms.memory_limit) return made;
  }
  return plan_blocks(f, terms, build_attention_backward);
}

std::uint64_t hash_of(const attention_form &f) noexcept {
  hasher mixed;
  const attention_masks &m = f.masks;
  const int has = m.has_bias | m.has_visible << 1 | m.has_query_lengths << 2 | m.has_key_lengths << 3 | m.from_end << 4;
  for (const std::int64_t x :
       {std::int64_t{has}, m.window, f.batch, f.heads, f.kv_heads, f.queries, f.keys, f.width, f.value_width, f.q.token,
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
