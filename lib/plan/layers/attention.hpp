// SPDX-License-Identifier: Apache-2.0
// Attention, O = softmax(scale * Q * K^T + mask) * V for each head, as one schedule, and its gradients as another one.
// Scores are in the arena, for a block of queries of some heads at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "model/device_model.hpp"
#include "ops/attention.hpp"
#include "ops/attention_backward.hpp"
#include "plan/form/form.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

// The parameters; o: of the gradients, dO.
enum class attention_parameter : std::uint8_t { q, k, v, o, dq, dk, dv, bias, visible, query_lengths, key_lengths };
inline constexpr std::size_t attention_parameters = 11;

// What hides keys beside a causal limit that is known when the attention is planned.
struct attention_masks {
  bool has_bias = false, has_visible = false, has_query_lengths = false, has_key_lengths = false;
  head_strides bias, visible;  // of bytes: visible
  bool from_end = false;       // the causal limit follows the lengths, of which there are some
  std::int64_t window = 0;     // of the limit; 0: none
  bool exist() const noexcept {
    return has_bias || has_visible || has_query_lengths || has_key_lengths || from_end || window > 0;
  }
  bool operator==(const attention_masks &) const = default;
};

struct attention_form {
  std::int64_t batch = 1, heads = 1, kv_heads = 1;  // heads is a multiple of kv_heads
  std::int64_t queries = 0, keys = 0, width = 0, value_width = 0;
  head_strides q, k, v, o;
  sg_dtype type = SG_DTYPE_F32;
  sg_compute compute = SG_COMPUTE_EXACT;
  bool causal = false;           // query i has the keys j <= i + mask_offset
  std::int64_t mask_offset = 0;  // of a limit that follows the lengths, too
  attention_masks masks;
  std::int64_t workspace = 0;  // limit of the arena in bytes; 0: by the model
  bool by_device = false;      // the device has one command for it
  // Of the gradients, which have no O.
  head_strides dout, dq, dk, dv;
  bool computes_dq = false, computes_dk = false, computes_dv = false;
  std::array<memory_space, attention_parameters> spaces{};  // by parameter
  bool operator==(const attention_form &) const = default;
};
// The gradients.
struct attention_backward_form : attention_form {
  bool operator==(const attention_backward_form &) const = default;
};

// Bytes of the arena without a limit by the caller.
std::int64_t usual_attention_workspace(const device_model &model, int lanes);

// Elements from an operand's first to its end; 0 if it is empty.
std::int64_t head_elements(const attention_form &f, const head_strides &x, std::int64_t heads, std::int64_t tokens,
                           std::int64_t width);

// The attention as one kernel.
ops::attention fused(const attention_form &f);
ops::attention_backward fused(const attention_backward_form &f);
schedule build_fused_attention(const attention_form &f, const device_model &model);
schedule build_fused_attention(const attention_backward_form &f, const device_model &model);

// Of an attention with elements in O, by GEMMs. lanes: compute lanes to use at most. Sets predicted_seconds and
// bound_seconds. Throws SG_STATUS_OUT_OF_MEMORY if the workspace is too small for one query, with the requirement.
schedule build_attention(const attention_form &f, const device_model &model, int lanes);

// Of gradients with elements in one of them. The sums of dK and dV of f16 and bf16 are in the arena beyond the
// workspace, if there are several blocks.
schedule build_attention_backward(const attention_form &f, const device_model &model, int lanes);

// The parts of the forms: within the memory limit, with a smaller workspace if need be; by the device's kernel where
// that is faster.
schedule plan_of(const attention_form &f, const plan_terms &terms);
schedule plan_of(const attention_backward_form &f, const plan_terms &terms);
void visit_operands(attention_form &f, const operand_visitor &visit);
void visit_operands(attention_backward_form &f, const operand_visitor &visit);
std::uint64_t hash_of(const attention_form &f) noexcept;
std::string description_of(const attention_form &f);
std::string description_of(const attention_backward_form &f);

}  // namespace sg
