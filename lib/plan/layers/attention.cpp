// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/attention.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/layers/attention_parts.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {
namespace {

attention_parts::operand_lists operands_of(const attention_form &f) {
  using enum attention_parameter;
  return {{{q, f.q, f.width}, {o, f.o, f.value_width, true}}, {{k, f.k, f.width}, {v, f.v, f.value_width}}};
}

class attention_build : attention_parts {
 public:
  attention_build(const attention_form &f, const device_model &model, int lanes)
      : attention_parts(f, model, lanes, operands_of(f),
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
    copy_heads();
    for (std::int64_t outer = 0; outer < l_.outer; ++outer)
      for (const range &items : cut(l_.items, ceil_div(l_.items, items_)))
        for (std::int64_t member = 0; member < l_.members; ++member)
          for (std::int64_t row = 0; row < l_.rows; row += rows_)
            add_block({outer, member, items, {row, std::min(rows_, l_.rows - row)}}, std::uint16_t(next++ % lanes_));
    copy_results_back();
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
      return multiply(of_queries(o, b), values, SG_TRANSPOSE_N, factors, SG_TRANSPOSE_N, scalar_role::one, false, lane);
    // The scores are no longer needed.
    const std::int32_t wide = alias(scores_[lane], score_type_, b.rows.size, f_.value_width * size_of(score_type_));
    const view averages{wide, 0, b.items.size, 0, f_.value_width, f_.value_width, b.rows.size};
    multiply(averages, values, SG_TRANSPOSE_N, factors, SG_TRANSPOSE_N, scalar_role::one, false, lane);
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

ops::attention_backward fused(const attention_backward_form &f) {
  ops::attention_backward what;
  static_cast<ops::attention &>(what) = fused(static_cast<const attention_form &>(f));
  what.of_o = f.dout;
  what.of_dq = f.dq, what.of_dk = f.dk, what.of_dv = f.dv;
  return what;
}

namespace {

// A schedule of one command, whose operands are parameters.
class fused_build {
 public:
  fused_build(const attention_form &f, const device_model &model) : f_(f), model_(model) {}

  void add_queries(command &c, std::size_t view, const char *name, const head_strides &x, std::int64_t width) {
    add(c, view, name, x, f_.heads, f_.queries, width);
  }
  void add_keys(command &c, std::size_t view, const char *name, const head_strides &x, std::int64_t width) {
    add(c, view, name, x, f_.kv_heads, f_.keys, width);
  }
  schedule finish(const command &c, const char *strategy, double flops, std::int64_t scratch_bytes = 0) {
    command made = c;
    if (scratch_bytes > 0) {
      const std::int32_t room = builder_.add_device_buffer(SG_DTYPE_F32, scratch_bytes);
      const std::int64_t elements = scratch_bytes / size_of(SG_DTYPE_F32);
      made.views[ops::attention_backward::scratch] = view{room, 0, 1, 0, elements, elements, 1};
    }
    builder_.add(made);
    schedule out = builder_.finish(strategy);
    out.flops = flops;
    out.predicted_seconds = simulate(out, model_).seconds;
    out.bound_seconds = std::max(flops / gemm_rate_of(model_, f_.type, f_.compute), bytes_ / model_.memory_rate);
    return out;
  }
  // A parameter without elements, in the place of one that is not given.
  void skip(const char *name) { builder_.add_parameter({{0, 1, 1, 0, f_.type, SG_MEMORY_DEVICE, false}, name}); }

 private:
  void add(command &c, std::size_t at, const char *name, const head_strides &x, std::int64_t heads, std::int64_t tokens,
           std::int64_t width) {
    const std::int64_t elements = head_elements(f_, x, heads, tokens, width);
    bytes_ += double(f_.batch) * double(heads) * double(tokens) * double(width) * double(size_of(f_.type));
    const operand span{elements, 1, std::max<std::int64_t>(1, elements), 0, f_.type, SG_MEMORY_DEVICE, false};
    c.views[at] = builder_.part_of(builder_.add_parameter({span, name}), {0, 1}, {0, 0, elements, 1});
  }

  const attention_form &f_;
  const device_model &model_;
  schedule_builder builder_;
  double bytes_ = 0;
};

}  // namespace

schedule build_fused_attention(const attention_form &f, const device_model &model) {
  using what = ops::attention;
  fused_build build(f, model);
  command c;
  c.what = fused(f);
  build.add_queries(c, what::q, "Q", f.q, f.width);
  build.add_keys(c, what::k, "K", f.k, f.width);
  build.add_keys(c, what::v, "V", f.v, f.value_width);
  build.add_queries(c, what::o, "O", f.o, f.value_width);
  return build.finish(c, "attention, one kernel", ops::flops_of(fused(f)));
}

schedule build_fused_attention(const attention_backward_form &f, const device_model &model) {
  using what = ops::attention_backward;
  constexpr double gemms = 5, gemms_of_attention = 2;
  fused_build build(f, model);
  command c;
  c.what = fused(f);
  build.add_queries(c, what::q, "Q", f.q, f.width);
  build.add_keys(c, what::k, "K", f.k, f.width);
  build.add_keys(c, what::v, "V", f.v, f.value_width);
  build.add_queries(c, what::dout, "dO", f.dout, f.value_width);
  f.computes_dq ? build.add_queries(c, what::dq, "dQ", f.dq, f.width) : build.skip("dQ");
  f.computes_dk ? build.add_keys(c, what::dk, "dK", f.dk, f.width) : build.skip("dK");
  f.computes_dv ? build.add_keys(c, what::dv, "dV", f.dv, f.value_width) : build.skip("dV");
  return build.finish(c, "attention backward, one command", ops::flops_of(fused(f)) * gemms / gemms_of_attention,
                      ops::scratch_of(fused(f), f.type, {f.computes_dq, f.computes_dk, f.computes_dv}));
}

schedule build_attention(const attention_form &f, const device_model &model, int lanes) {
  if (gemm_rate_of(model, f.type, f.compute) <= 0)
    throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s GEMM", model.name.c_str(), name_of(f.type));
  return attention_build(f, model, lanes).run();
}

}  // namespace sg
