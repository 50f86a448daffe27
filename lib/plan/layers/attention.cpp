// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/attention.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/layers/attention_parts.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {
namespace {

class attention_build : attention_parts {
 public:
  attention_build(const attention_form &f, const device_model &model, int lanes)
      : attention_parts(f, model,
                        {{attention_parameter::q, f.q, f.width}, {attention_parameter::o, f.o, f.value_width}},
                        {{attention_parameter::k, f.k, f.width}, {attention_parameter::v, f.v, f.value_width}},
                        accumulator_of(f.type) == f.type ? row_memory{0, 0} : row_memory{f.value_width, 1, true}) {
    choose_blocks(lanes, false);
    for (int lane = 0; lane < lanes_; ++lane) {
      scores_.push_back(builder_.add_device_buffer(score_type_, wide_block_bytes()));
      if (!memory_.has_sum) continue;
      weights_.push_back(builder_.add_device_buffer(f.type, block_bytes(f.type)));
      sums_.push_back(builder_.add_device_buffer(SG_DTYPE_F32, bytes_of_rows(size_of(SG_DTYPE_F32))));
    }
  }

  schedule run() {
    std::int64_t next = 0;
    for (std::int64_t outer = 0; outer < l_.outer; ++outer)
      for (const range &items : cut(l_.items, ceil_div(l_.items, items_)))
        for (std::int64_t member = 0; member < l_.members; ++member)
          for (std::int64_t row = 0; row < l_.rows; row += rows_)
            add_block({outer, member, items, {row, std::min(rows_, l_.rows - row)}}, std::uint16_t(next++ % lanes_));
    return finish("attention " + std::to_string(next) + (next == 1 ? " block" : " blocks"));
  }

 private:
  void add_block(const block_of_queries &b, std::uint16_t lane) {
    const heads_operand &q = of_queries_[0], &o = of_queries_[1], &k = of_keys_[0], &v = of_keys_[1];
    const range keys = visible_keys(b.rows);
    if (keys.size == 0) return fill(of_queries(o, b), lane);
    const bool rounds = memory_.has_sum;
    const std::int64_t rows = b.items.size * b.rows.size;
    const view sums = rounds ? view{sums_[lane], 0, 1, 0, rows, rows, 1} : view{};
    const std::int32_t weights = rounds ? weights_[lane] : scores_[lane];
    add_weights(b, k, q, scores_[lane], weights, sums, keys, lane);
    const view values = of_keys(v, b, keys.first, keys.size),
               factors = of_block(weights, f_.type, b.items.size, b.rows.size, keys.size);
    if (!rounds || f_.value_width == 0)
      return multiply(of_queries(o, b), values, SG_OP_N, factors, SG_OP_N, scalar_role::one, false, lane);
    // The scores are no longer needed.
    const std::int32_t wide = alias(scores_[lane], score_type_, b.rows.size, f_.value_width * size_of(score_type_));
    const view averages{wide, 0, b.items.size, 0, f_.value_width, f_.value_width, b.rows.size};
    multiply(averages, values, SG_OP_N, factors, SG_OP_N, scalar_role::one, false, lane);
    convert(of_queries(o, b), averages, sums, lane);
  }

  std::vector<std::int32_t> scores_, weights_, sums_;  // by lane
};

}  // namespace

std::int64_t head_elements(const attention_form &f, const head_strides &x, std::int64_t heads, std::int64_t tokens,
                           std::int64_t width) {
  if (f.batch == 0 || heads == 0 || tokens == 0 || width == 0) return 0;
  std::int64_t elements = width;
  for (const auto &[count, stride] :
       {std::pair{f.batch, x.batch}, std::pair{heads, x.head}, std::pair{tokens, x.token}})
    elements = checked_add(elements, checked_mul(count - 1, stride, "an operand"), "an operand");
  checked_mul(elements, size_of(f.type), "an operand");
  return elements;
}

ops::attention fused(const attention_form &f) {
  ops::attention what;
  what.batch = f.batch, what.heads = f.heads, what.kv_heads = f.kv_heads;
  what.queries = f.queries, what.keys = f.keys, what.width = f.width, what.value_width = f.value_width;
  what.of_q = f.q, what.of_k = f.k, what.of_v = f.v, what.of_o = f.o;
  what.causal = f.causal, what.mask_offset = f.mask_offset;
  return what;
}

bool suits_fused(const attention_form &f, const device_model &model) {
  constexpr std::int64_t enough_queries = 16;
  return f.compute == SG_COMPUTE_EXACT && (f.queries >= enough_queries || 2 * f.batch * f.heads >= model.units);
}

schedule build_fused_attention(const attention_form &f, const device_model &model) {
  schedule_builder builder;
  command c;
  c.what = fused(f);
  double bytes = 0;
  const auto whole = [&](const char *name, const head_strides &x, std::int64_t heads, std::int64_t tokens,
                         std::int64_t width) {
    const std::int64_t elements = head_elements(f, x, heads, tokens, width);
    bytes += double(f.batch) * double(heads) * double(tokens) * double(width) * double(size_of(f.type));
    const operand span{elements, 1, std::max<std::int64_t>(1, elements), 0, f.type, SG_MEMORY_DEVICE, false};
    return builder.part_of(builder.add_parameter({span, name}), {0, 1}, {0, 0, elements, 1});
  };
  c.views[ops::attention::q] = whole("Q", f.q, f.heads, f.queries, f.width);
  c.views[ops::attention::k] = whole("K", f.k, f.kv_heads, f.keys, f.width);
  c.views[ops::attention::v] = whole("V", f.v, f.kv_heads, f.keys, f.value_width);
  c.views[ops::attention::o] = whole("O", f.o, f.heads, f.queries, f.value_width);
  builder.add(c);
  schedule made = builder.finish("attention, one kernel");
  made.flops = ops::flops_of(fused(f));
  made.predicted_seconds = simulate(made, model).seconds;
  made.bound_seconds = std::max(made.flops / gemm_rate_of(model, f.type, f.compute), bytes / model.memory_rate);
  return made;
}

schedule build_attention(const attention_form &f, const device_model &model, int lanes) {
  if (gemm_rate_of(model, f.type, f.compute) <= 0)
    throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s GEMM", model.name.c_str(), name_of(f.type));
  return attention_build(f, model, lanes).run();
}

}  // namespace sg
