// SPDX-License-Identifier: Apache-2.0
// The operations and their order are those of NVIDIA's cudnn-frontend, which cuDNN matches with its kernels
// (https://github.com/NVIDIA/cudnn-frontend, its documentation of scaled dot-product attention).
#include "backends/cuda/dnn/attention_graph.hpp"

#include <algorithm>

#include "backends/common/types.hpp"

namespace sg::cuda::dnn {
namespace {

constexpr std::int64_t vector = 8;  // elements that cuDNN's kernels read at once
constexpr std::int64_t most_width = 256;

using of_heads = std::array<std::int64_t, 3>;

// Strides of dimensions with one element are those of a dense tensor.
of_heads strides_of(const sg_backend_heads &x, std::int64_t batch, std::int64_t heads, std::int64_t tokens,
                    std::int64_t width) noexcept {
  const std::int64_t token = tokens > 1 ? x.token : width;
  const std::int64_t head = heads > 1 ? x.head : tokens * token;
  return {batch > 1 ? x.batch : heads * head, head, token};
}

bool fit(const of_heads &x) noexcept {
  return std::all_of(x.begin(), x.end(), [](std::int64_t stride) { return stride > 0 && stride % vector == 0; });
}

template <class Command>
std::optional<attention_shape> common_shape(const Command &c) noexcept {
  if (!is_short_float(c.type) || !(c.scale > 0) || c.queries <= 0 || c.keys <= 0) return {};
  if (c.width % vector != 0 || c.value_width % vector != 0 || c.width > most_width || c.value_width > most_width)
    return {};
  if (c.width <= 0 || c.value_width <= 0 || c.keys >= std::int64_t{1} << 31 || c.queries >= std::int64_t{1} << 31)
    return {};
  attention_shape s{};
  s.batch = c.batch, s.heads = c.heads, s.kv_heads = c.kv_heads;
  s.queries = c.queries, s.keys = c.keys, s.width = c.width, s.value_width = c.value_width;
  s.type = c.type == SG_DTYPE_F16 ? f16 : bf16;
  // With all keys for the first query there is no mask.
  const bool masked = c.mask == SG_MASK_CAUSAL && c.mask_offset < c.keys - 1;
  if (masked && c.mask_offset != 0 && (c.mask_offset != c.keys - c.queries || c.keys < c.queries)) return {};
  s.mask = !masked ? band::none : c.mask_offset == 0 ? band::from_start : band::from_end;
  s.strides[0] = strides_of(c.q, c.batch, c.heads, c.queries, c.width);
  s.strides[1] = strides_of(c.k, c.batch, c.kv_heads, c.keys, c.width);
  s.strides[2] = strides_of(c.v, c.batch, c.kv_heads, c.keys, c.value_width);
  return s;
}

class attention_description {
 public:
  using tensor = computation::tensor;

  attention_description(computation &to, const attention_shape &of) noexcept
      : to_(to),
        s_(of),
        scores_(extent::dense(of.batch, of.heads, of.queries, of.keys)),
        rows_(extent::dense(of.batch, of.heads, of.queries, 1)) {}

  extent operand(std::size_t which, std::int64_t heads, std::int64_t tokens, std::int64_t width) const noexcept {
    const of_heads &x = s_.strides[which];
    return {{s_.batch, heads, tokens, width}, {x[0], x[1], x[2], 1}};
  }
  extent by_query(std::size_t which, std::int64_t width) const noexcept {
    return operand(which, s_.heads, s_.queries, width);
  }
  extent by_key(std::size_t which, std::int64_t width) const noexcept {
    return operand(which, s_.kv_heads, s_.keys, width);
  }
  const extent &scores() const noexcept { return scores_; }
  const extent &rows() const noexcept { return rows_; }

  tensor apply(function f, tensor x, tensor b = -1) {
    const tensor y = to_.within(scores_, f32);
    to_.apply(f, f32, y, x, b);
    return y;
  }
  tensor index_along(tensor x, std::int64_t axis, data_type arithmetic) {
    const tensor y = to_.within(scores_, i32);
    to_.apply(dnn::index_along, arithmetic, y, x, -1, -1, axis);
    return y;
  }
  tensor compare(function f, tensor x, tensor b) {
    const tensor y = to_.within(scores_, boolean);
    to_.apply(f, boolean, y, x, b);
    return y;
  }
  tensor keep_where(tensor condition, tensor x, tensor hidden) {
    const tensor y = to_.within(scores_, f32);
    to_.apply(select, f32, y, x, hidden, condition);
    return y;
  }

  // Scores without those of hidden keys.
  tensor masked(tensor x) {
    if (s_.mask == band::none) return x;
    tensor row = index_along(x, 2, f32);
    const tensor column = index_along(x, 3, f32);
    if (s_.mask == band::from_end) {
      const tensor moved = to_.within(scores_, i32), last = to_.within(scores_, i32);
      to_.apply(add, i32, moved, row, to_.value(of_keys, i32));
      to_.apply(subtract, i32, last, moved, to_.value(of_queries, i32));
      row = last;
    }
    return keep_where(compare(greater_or_equal, row, column), x, to_.value(of_hidden, f32));
  }

  // Scores of which those beyond the lengths of their batch are hidden.
  tensor padded(tensor x, tensor query_lengths, tensor key_lengths) {
    const tensor row = index_along(x, 2, i32), column = index_along(x, 3, i32);
    const tensor in_rows = compare(less, row, query_lengths), in_columns = compare(less, column, key_lengths);
    return keep_where(compare(logical_and, in_rows, in_columns), x, to_.value(of_padding, f32));
  }

 private:
  computation &to_;
  const attention_shape &s_;
  extent scores_, rows_;
};

}  // namespace

std::vector<std::int64_t> attention_shape::key() const {
  std::vector<std::int64_t> all = {gradients, type,  std::int64_t(mask), batch, heads, kv_heads, queries,
                                   keys,      width, value_width};
  for (const auto &each : strides) all.insert(all.end(), each.begin(), each.end());
  return all;
}

std::optional<attention_shape> shape_of(const sg_backend_attention &c) noexcept {
  std::optional<attention_shape> s = common_shape(c);
  if (!s) return {};
  s->strides[3] = strides_of(c.o, c.batch, c.heads, c.queries, c.value_width);
  for (std::size_t i = 0; i < 4; ++i)
    if (!fit(s->strides[i])) return {};
  return s;
}

std::optional<attention_shape> shape_of(const sg_backend_attention_backward &c) noexcept {
  std::optional<attention_shape> s = common_shape(c);
  if (!s) return {};
  s->gradients = true;
  s->strides[3] = strides_of(c.dout, c.batch, c.heads, c.queries, c.value_width);
  // A missing result is in memory of the command, without gaps.
  const auto of = [](const sg_backend_heads &x) { return x.data != nullptr ? x : sg_backend_heads{}; };
  const auto dense = [](std::int64_t heads, std::int64_t tokens, std::int64_t width) {
    return of_heads{heads * tokens * width, tokens * width, width};
  };
  s->strides[4] = c.dq.data != nullptr ? strides_of(of(c.dq), c.batch, c.heads, c.queries, c.width)
                                       : dense(c.heads, c.queries, c.width);
  s->strides[5] = c.dk.data != nullptr ? strides_of(of(c.dk), c.batch, c.kv_heads, c.keys, c.width)
                                       : dense(c.kv_heads, c.keys, c.width);
  s->strides[6] = c.dv.data != nullptr ? strides_of(of(c.dv), c.batch, c.kv_heads, c.keys, c.value_width)
                                       : dense(c.kv_heads, c.keys, c.value_width);
  for (const of_heads &each : s->strides)
    if (!fit(each)) return {};
  return s;
}

// S = scale Q K^T, masked; P = exp(S - max S); O = P / sum P * V; the statistics are max S + log(sum P).
void describe_attention(computation &to, const attention_shape &s, bool has_statistics) {
  attention_description d(to, s);
  const auto q = to.stored(of_q, d.by_query(0, s.width), s.type);
  const auto k = to.stored(of_k, d.by_key(1, s.width).transposed(), s.type);
  const auto v = to.stored(of_v, d.by_key(2, s.value_width), s.type);
  const auto o = to.stored(
      of_o, s.gradients ? extent::dense(s.batch, s.heads, s.queries, s.value_width) : d.by_query(3, s.value_width),
      s.type);
  const auto products = to.within(d.scores(), f32);
  to.multiply_matrices(products, q, k);
  const auto scores = d.masked(d.apply(multiply, products, to.value(of_scale, f32)));
  const auto most = to.within(d.rows(), f32), total = to.within(d.rows(), f32);
  to.reduce(maximum, most, scores);
  const auto weights = d.apply(exponential, d.apply(subtract, scores, most));
  to.reduce(sum, total, weights);
  const auto log_of_total = to.within(d.rows(), f32);
  to.apply(logarithm, f32, log_of_total, total);
  const auto statistics = has_statistics ? to.stored(of_statistics, d.rows(), f32) : to.within(d.rows(), f32);
  to.apply(add, f32, statistics, most, log_of_total);
  const auto shares = to.within(d.scores(), s.type);
  to.apply(divide, f32, shares, weights, total);
  to.multiply_matrices(o, shares, v);
}

// P = exp(S - statistics); dV = P^T dO; dP = dO V^T; dS = scale P (dP - sum(dO * O)); dK = dS^T Q; dQ = dS K.
void describe_gradients(computation &to, const attention_shape &s, bool pads) {
  attention_description d(to, s);
  const auto q = to.stored(of_q, d.by_query(0, s.width), s.type);
  const auto k = to.stored(of_k, d.by_key(1, s.width).transposed(), s.type);
  const auto v = to.stored(of_v, d.by_key(2, s.value_width).transposed(), s.type);
  const auto o = to.stored(of_o, extent::dense(s.batch, s.heads, s.queries, s.value_width), s.type);
  const auto dout = to.stored(of_d_o, d.by_query(3, s.value_width), s.type);
  const auto dq = to.stored(of_dq, d.by_query(4, s.width), s.type);
  const auto dk = to.stored(of_dk, d.by_key(5, s.width), s.type);
  const auto dv = to.stored(of_dv, d.by_key(6, s.value_width), s.type);
  const auto scale = to.value(of_scale, f32), one = to.value(of_one, f32);
  const auto statistics = to.stored(of_statistics, d.rows(), f32), sums = to.stored(of_sums, d.rows(), f32);
  const auto dq_sums = to.stored(of_dq_sums, extent::dense(s.batch, s.heads, s.queries, s.width), f32);
  const extent a_batch{{s.batch, 1, 1, 1}, {1, 1, 1, 1}};
  const auto rows = pads ? to.stored(of_query_lengths, a_batch, i32) : -1;
  const auto keys = pads ? to.stored(of_key_lengths, a_batch, i32) : -1;

  const std::int64_t width = s.value_width, heads = s.heads;
  const auto each = to.within(
      {{s.batch, heads, s.queries, width}, {heads * s.queries * width, s.queries * width, heads * width, 1}}, f32);
  to.apply(multiply, f32, each, dout, o);
  const auto of_rows = to.within(d.rows(), f32);
  to.reduce(sum, of_rows, each);
  to.apply(multiply, f32, sums, of_rows, one);

  const auto products = to.within(d.scores(), f32);
  to.multiply_matrices(products, q, k, rows, keys);
  auto scores = d.apply(subtract, d.apply(multiply, products, scale), statistics);
  if (pads) scores = d.padded(scores, rows, keys);
  const auto weights = d.apply(exponential, d.masked(scores));

  const auto transposed = [&](computation::tensor x) {
    const auto made = to.within(d.scores().transposed(), s.type);
    to.reshape(made, x);
    return made;
  };
  // The heads with the same keys are added.
  const auto add_up = [&](computation::tensor result, computation::tensor a, computation::tensor b,
                          std::int64_t columns) {
    if (s.heads == s.kv_heads) return to.multiply_matrices(result, a, b, keys, -1, rows);
    const auto of_heads = to.within(extent::dense(s.batch, s.heads, s.keys, columns), s.type);
    to.multiply_matrices(of_heads, a, b, keys, -1, rows);
    to.reduce(sum, result, of_heads);
  };
  add_up(dv, transposed(weights), dout, s.value_width);

  const auto of_weights = to.within(d.scores(), f32);
  to.multiply_matrices(of_weights, dout, v, rows, keys);
  const auto of_scores = d.apply(multiply, d.apply(multiply, d.apply(subtract, of_weights, sums), weights), scale);
  add_up(dk, transposed(of_scores), q, s.width);

  const auto k_rows = to.within(extent::dense(s.batch, s.kv_heads, s.keys, s.width), f32);
  to.reshape(k_rows, k);
  to.multiply_matrices(dq_sums, of_scores, k_rows, rows, -1, keys);
  to.apply(identity, f32, dq, dq_sums);
}

}  // namespace sg::cuda::dnn
