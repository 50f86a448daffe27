// SPDX-License-Identifier: Apache-2.0
// The gradients of attention. Of each block of queries the weights P are computed again; then
//     dV += P^T dO    dP = dO V^T    dS = P * (dP - the rows' sums of P * dP)    dQ = scale dS K    dK += scale dS^T Q
// The blocks of one group of heads add to the same dK and dV, so they are on one lane.
#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "ops/softmax_backward.hpp"
#include "plan/layers/attention_parts.hpp"

namespace sg {
namespace {

attention_parts::operand_lists gradient_operands_of(const attention_form &f) {
  using enum attention_parameter;
  attention_parts::operand_lists made{{{q, f.q, f.width}, {o, f.dout, f.value_width}},
                                      {{k, f.k, f.width}, {v, f.v, f.value_width}}};
  if (f.computes_dq) made.of_queries.push_back({dq, f.dq, f.width, true});
  if (f.computes_dk) made.of_keys.push_back({dk, f.dk, f.width, true});
  if (f.computes_dv) made.of_keys.push_back({dv, f.dv, f.value_width, true});
  return made;
}

class attention_backward_build : attention_parts {
 public:
  attention_backward_build(const attention_form &f, const device_model &model, int lanes)
      : attention_parts(f, model, lanes, gradient_operands_of(f), {0, 1}) {
    choose_blocks(lanes, true);
    copy_heads();
    for (int lane = 0; lane < lanes_; ++lane) {
      products_.push_back(builder_.add_device_buffer(score_type_, block_bytes(score_type_)));
      weights_.push_back(builder_.add_device_buffer(f.type, block_bytes(f.type)));
    }
    if (f.computes_dk) add_result(of_keys_[2]);
    if (f.computes_dv) add_result(of_keys_.back());
  }

  schedule run() {
    std::int64_t next = 0;
    for (std::int64_t outer = 0; outer < l_.outer; ++outer)
      for (const range &items : cut(l_.items, ceil_div(l_.items, items_)))
        add_group(outer, items, std::uint16_t(next++ % lanes_));
    copy_results_back();
    return finish("attention backward");
  }

 private:
  // dK or dV of a group of heads: sums of blocks, in memory of the lane if the result itself cannot hold them.
  struct result {
    heads_operand to;
    std::vector<std::int32_t> sums;  // by lane; empty: the result holds them
    std::int64_t keys = 0;           // the first of the group's, which have been written
  };

  void add_result(const heads_operand &to) {
    result made{to, {}, 0};
    const bool has_one_block = l_.members == 1 && rows_ >= l_.rows;
    for (int lane = 0; lane < lanes_ && score_type_ != f_.type && !has_one_block && to.width > 0; ++lane) {
      const std::int64_t of_item =
          checked_mul(std::max<std::int64_t>(1, f_.keys), to.width * size_of(score_type_), "sums");
      made.sums.push_back(builder_.add_device_buffer(score_type_, checked_mul(items_, of_item, "sums"), of_item));
    }
    results_.push_back(std::move(made));
  }

  view view_of(const result &x, const block_of_queries &b, std::int64_t first, std::int64_t keys,
               std::uint16_t lane) const {
    if (x.sums.empty()) return of_keys(x.to, b, first, keys);
    return {x.sums[lane], 0, b.items.size, first * x.to.width * size_of(score_type_), x.to.width, x.to.width, keys};
  }

  // The last queries come first: they have the most keys.
  void add_group(std::int64_t outer, const range &items, std::uint16_t lane) {
    const block_of_queries whole{outer, 0, items, {}};
    for (result &each : results_) {
      each.keys = 0;
      if (f_.masks.window > 0 && each.to.width > 0 && f_.keys > 0) begin_result(each, whole, lane);
    }
    for (std::int64_t member = 0; member < l_.members; ++member)
      for (std::int64_t row = l_.rows > 0 ? (l_.rows - 1) / rows_ * rows_ : -1; row >= 0; row -= rows_)
        add_block({outer, member, items, {row, std::min(rows_, l_.rows - row)}}, lane);
    for (result &each : results_)
      if (each.to.width > 0 && f_.keys > 0) finish_result(each, whole, lane);
  }

  // With a window blocks do not begin with the first key: they all add to zeros.
  void begin_result(result &x, const block_of_queries &whole, std::uint16_t lane) {
    fill(view_of(x, whole, 0, f_.keys, lane), lane);
    x.keys = f_.keys;
  }

  void finish_result(const result &x, const block_of_queries &b, std::uint16_t lane) {
    if (x.keys < f_.keys) fill(of_keys(x.to, b, x.keys, f_.keys - x.keys), lane);
    if (x.sums.empty() || x.keys == 0) return;
    convert(of_keys(x.to, b, 0, x.keys), view_of(x, b, 0, x.keys, lane), {}, lane);
  }

  void add_block(const block_of_queries &b, std::uint16_t lane) {
    const heads_operand &q = of_queries_[0], &dout = of_queries_[1], &k = of_keys_[0], &v = of_keys_[1];
    const range keys = visible_keys(b.rows);
    if (keys.size == 0) {
      if (f_.computes_dq && f_.width > 0) fill(of_queries(of_queries_[2], b), lane);
      return;
    }
    const std::int32_t products = products_[lane], weights = weights_[lane];
    const auto block = [&](std::int32_t buffer, sg_dtype type) {
      return of_block(buffer, type, b.items.size, b.rows.size, keys.size);
    };
    add_weights(b, k, q, products, weights, {}, keys, lane);
    if (f_.computes_dv)
      add_to(results_.back(), b, of_queries(dout, b), block(weights, f_.type), scalar_role::one, keys, lane);
    if (f_.width == 0 || !(f_.computes_dq || f_.computes_dk)) return;
    if (f_.value_width > 0)
      multiply(block(products, score_type_), of_keys(v, b, keys.first, keys.size), SG_TRANSPOSE_T, of_queries(dout, b),
               SG_TRANSPOSE_N, scalar_role::one, false, lane);
    else
      fill(block(products, score_type_), lane);
    command c;
    c.what = ops::softmax_backward{};
    c.where = {lane_kind::compute, lane};
    c.views[ops::softmax_backward::dx] = c.views[ops::softmax_backward::y] = of_stack(weights, b, keys.size);
    c.views[ops::softmax_backward::dy] = of_stack(products, b, keys.size);
    builder_.add(c);
    if (f_.computes_dq)
      multiply(of_queries(of_queries_[2], b), of_keys(k, b, keys.first, keys.size), SG_TRANSPOSE_N,
               block(weights, f_.type), SG_TRANSPOSE_N, scalar_role::job, false, lane);
    if (f_.computes_dk)
      add_to(results_.front(), b, of_queries(q, b), block(weights, f_.type), scalar_role::job, keys, lane);
  }

  // sums += alpha * rows^T * weights, of the block's keys.
  void add_to(result &x, const block_of_queries &b, const view &rows, const view &weights, scalar_role alpha,
              const range &keys, std::uint16_t lane) {
    if (x.to.width == 0) return;
    multiply(view_of(x, b, keys.first, keys.size, lane), rows, SG_TRANSPOSE_N, weights, SG_TRANSPOSE_T, alpha,
             x.keys > 0, lane);
    x.keys = std::max(x.keys, keys.end());
  }

  std::vector<std::int32_t> products_, weights_;  // by lane
  std::vector<result> results_;                   // dK, dV
};

}  // namespace

schedule build_attention_backward(const attention_form &f, const device_model &model, int lanes) {
  if (gemm_rate_of(model, f.type, f.compute) <= 0)
    throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s GEMM", model.name.c_str(), name_of(f.type));
  return attention_backward_build(f, model, lanes).run();
}

}  // namespace sg
