// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/attention_parts.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {
namespace {

// Scores for each lane: on cores they stay in a cache.
constexpr std::int64_t usual_workspace = std::int64_t(256) << 20, usual_workspace_of_core = std::int64_t(1) << 20;
// Fewer queries make GEMMs that reuse the keys too little.
constexpr std::int64_t least_queries = 128, least_queries_of_core = 32;
// On cores, of a lane at the rate of large GEMMs: less is not worth the cost of another core, which other jobs could
// use.
constexpr double least_seconds_of_lane = 10e-6;
// A causal mask spares the keys behind a block of queries, so that smaller blocks compute less.
constexpr std::int64_t causal_blocks = 8;

attention_loops loops_of(const attention_form &f, const attention_parts::operand_list &queries,
                         const attention_parts::operand_list &keys) {
  attention_loops l;
  const std::int64_t members = f.heads / f.kv_heads;
  if (f.kv_heads == 1) {
    l.items = f.batch;
  } else {
    l.items = f.kv_heads, l.items_are_heads = true;
    const auto merge = [&](const attention_parts::operand_list &all, std::int64_t heads) {
      return std::ranges::all_of(all,
                                 [&](const heads_operand &x) { return x.strides.batch == heads * x.strides.head; });
    };
    (merge(queries, f.kv_heads * members) && merge(keys, f.kv_heads) ? l.items : l.outer) *= f.batch;
  }
  l.folded = members > 1 && std::ranges::all_of(queries, [&](const heads_operand &x) {
               return f.queries == 1 || x.strides.head == f.queries * x.strides.token;
             });
  l.members = l.folded ? 1 : members;
  l.rows = l.folded ? members * f.queries : f.queries;
  return l;
}

using operands = attention_parts::operand_lists;

bool copies_heads(const attention_form &f, const device_model &model, const operands &all, std::int64_t workspace) {
  const bool has_room = f.workspace == 0 || f.workspace >= workspace;
  if (model.lanes_are_cores || !has_room || f.masks.exist() || f.heads != f.kv_heads || f.heads == 1 || f.batch <= 1)
    return false;
  double bytes = 0;
  bool merges = true, stacks = true;
  for (const auto &[list, tokens] : {std::pair{&all.of_queries, f.queries}, {&all.of_keys, f.keys}})
    for (const heads_operand &x : *list) {
      merges = merges && x.strides.batch == f.heads * x.strides.head;
      stacks = stacks && x.strides.batch == tokens * x.strides.token && x.width > 0;
      bytes += double(f.batch) * double(f.heads) * double(tokens) * double(x.width) * double(size_of(f.type));
    }
  return !merges && stacks && bytes <= double(workspace);
}

attention_form as_one_sequence(attention_form f) {
  f.heads *= f.batch, f.kv_heads *= f.batch, f.batch = 1;
  return f;
}

// The operands of one of the lists, or copies with all heads one after the other.
attention_parts::operand_list placed(const attention_form &f, attention_parts::operand_list list, std::int64_t tokens,
                                     bool copies) {
  for (heads_operand &x : list) {
    x.given = x.strides;
    if (copies) x.strides = {f.batch * f.heads * tokens * x.width, tokens * x.width, x.width};
  }
  return list;
}

}  // namespace

std::int64_t usual_attention_workspace(const device_model &model, int lanes) {
  return model.lanes_are_cores ? usual_workspace_of_core * lanes : std::min(usual_workspace, model.usable_memory() / 4);
}

attention_parts::attention_parts(const attention_form &f, const device_model &model, int lanes,
                                 const operand_lists &operands, const row_memory &memory)
    : copies_(copies_heads(f, model, operands, usual_attention_workspace(model, lanes))),
      f_(copies_ ? as_one_sequence(f) : f),
      model_(model),
      of_queries_(placed(f, operands.of_queries, f.queries, copies_)),
      of_keys_(placed(f, operands.of_keys, f.keys, copies_)),
      l_(loops_of(f_, of_queries_, of_keys_)),
      score_type_(accumulator_of(f.type)),
      memory_(memory),
      sequences_(f.batch),
      heads_(f.heads) {
  add_parameters(f);
}

// Elements from item to item.
std::int64_t attention_parts::item_of(const heads_operand &x, bool of_query) const noexcept {
  if (!l_.items_are_heads) return x.strides.batch;
  return x.strides.head * (of_query ? f_.heads / f_.kv_heads : 1);
}

// Items are batches, heads or heads with the same keys.
void attention_parts::add_parameters(const attention_form &given) {
  static constexpr const char *names[] = {
      "Q", "K", "V", "O", "dQ", "dK", "dV", "bias", "visible", "query lengths", "key lengths"};
  std::array<parameter, std::size(names)> all;
  std::size_t count = 0;
  const auto set = [&](const heads_operand &x, bool of_query) {
    const auto index = static_cast<std::size_t>(x.which);
    const std::int64_t elements = head_elements(given, x.given, of_query ? given.heads : given.kv_heads,
                                                of_query ? given.queries : given.keys, x.width);
    all[index].stored = {elements,         1,    std::max<std::int64_t>(1, elements), item_of(x, of_query), f_.type,
                         SG_MEMORY_DEVICE, false};
    all[index].name = names[index];
    count = std::max(count, index + 1);
  };
  const auto set_mask = [&](bool exists, attention_parameter which, std::int64_t elements, sg_dtype type) {
    if (!exists) return;
    const auto index = static_cast<std::size_t>(which);
    elements_[index] = elements;
    all[index] = {{elements, 1, elements, 0, type, SG_MEMORY_DEVICE, false}, names[index]};
    count = std::max(count, index + 1);
  };
  for (const heads_operand &x : of_queries_) set(x, true);
  for (const heads_operand &x : of_keys_) set(x, false);
  const attention_masks &m = f_.masks;
  using enum attention_parameter;
  set_mask(m.has_bias, bias, head_elements(f_, m.bias, f_.heads, f_.queries, f_.keys), f_.type);
  set_mask(m.has_visible, visible, head_elements(f_, m.visible, f_.heads, f_.queries, f_.keys), SG_DTYPE_I8);
  set_mask(m.has_query_lengths, query_lengths, f_.batch, SG_DTYPE_I32);
  set_mask(m.has_key_lengths, key_lengths, f_.batch, SG_DTYPE_I32);
  for (std::size_t i = 0; i < count; ++i) builder_.add_parameter(all[i]);
}

std::int64_t attention_parts::pitch() const { return round_up(std::max<std::int64_t>(1, f_.keys), 16); }
std::int64_t attention_parts::row_bytes(sg_dtype type) const { return checked_mul(pitch(), size_of(type), "scores"); }
std::int64_t attention_parts::wide_row_bytes() const {
  return std::max(row_bytes(score_type_), checked_mul(memory_.wide, size_of(score_type_), "scores"));
}
std::int64_t attention_parts::least_bytes() const {
  return round_up(wide_row_bytes(), 256) + memory_.copies * round_up(row_bytes(f_.type), 256) +
         (memory_.has_sum ? 256 : 0);
}
std::int64_t attention_parts::bytes_of_rows(std::int64_t row) const {
  return checked_mul(checked_mul(items_, rows_, "scores"), row, "scores");
}
std::int64_t attention_parts::blocks(bool by_items) const {
  const std::int64_t of_items = l_.outer * ceil_div(l_.items, items_);
  return by_items ? of_items : of_items * l_.members * ceil_div(l_.rows, rows_);
}

int attention_parts::lanes_worth(int lanes) const {
  const double products = double(f_.batch) * double(f_.heads) * double(f_.queries) * double(f_.keys);
  const double flops = flops_per_mac(f_.type) * products * double(f_.width + f_.value_width);
  return int(std::clamp(flops / gemm_rate_of(model_, f_.type, f_.compute) / least_seconds_of_lane, 1.0, double(lanes)));
}

void attention_parts::choose_blocks(int lanes, bool by_items) {
  const bool cores = model_.lanes_are_cores;
  if (copies_) lanes = 1;  // whose commands follow the copies
  const std::int64_t workspace = f_.workspace > 0 ? f_.workspace : usual_attention_workspace(model_, lanes);
  const std::int64_t least_bytes = this->least_bytes();
  if (least_bytes > workspace)
    throw error(SG_STATUS_OUT_OF_MEMORY, "the scores of one query need %lld bytes of workspace; the limit is %lld",
                static_cast<long long>(least_bytes), static_cast<long long>(workspace));
  const int most_lanes = cores ? lanes_worth(lanes) : by_items ? 1 : std::min(lanes, 2);
  lanes_ = int(std::clamp<std::int64_t>(workspace / least_bytes, 1, most_lanes));
  const std::int64_t room = std::max<std::int64_t>(1, (workspace / lanes_ - 3 * 256) / row_bytes());
  const std::int64_t least = cores ? least_queries_of_core : least_queries;
  items_ = l_.items, rows_ = std::max<std::int64_t>(1, l_.rows);
  if (f_.causal || (f_.masks.from_end && !f_.masks.has_query_lengths))
    rows_ = std::clamp(ceil_div(rows_, causal_blocks), std::min(rows_, 2 * least), rows_);
  while (items_ > 1 && (items_ * std::min(rows_, least) > room || (cores && blocks(by_items) < lanes_)))
    items_ = ceil_div(items_, 2);
  while (rows_ > 1 && (items_ * rows_ > room || (cores && rows_ > least && blocks(by_items) < lanes_ && !by_items)))
    rows_ = ceil_div(rows_, 2);
  if (l_.folded && rows_ < l_.rows) unfold();
  if (blocks(false) > most_asked_commands / (by_items ? 8 : 3))
    throw error(SG_STATUS_OUT_OF_MEMORY, "with a workspace of %lld bytes an attention would have %lld blocks",
                static_cast<long long>(workspace), static_cast<long long>(blocks(false)));
  lanes_ = int(std::min<std::int64_t>(lanes_, blocks(by_items)));
}

// A block of a folded matrix would begin in the middle of a head: each head is a matrix of its own then.
void attention_parts::unfold() {
  l_.folded = false;
  l_.members = f_.heads / f_.kv_heads;
  l_.rows = f_.queries;
  rows_ = std::min(rows_, l_.rows);
}

range attention_parts::visible_keys(const range &rows) const {
  const attention_masks &m = f_.masks;
  const range queries = l_.folded ? range{0, f_.queries} : rows;
  const auto at = [&](std::int64_t key) { return std::clamp<std::int64_t>(key, 0, f_.keys); };
  if (!f_.causal) {  // from the end the limit is largest where all keys exist, and no query is left out
    const bool is_known = m.from_end && !m.has_query_lengths;
    return {0, is_known ? at(queries.end() + f_.mask_offset + f_.keys - f_.queries) : f_.keys};
  }
  const std::int64_t end = at(queries.end() + f_.mask_offset);
  const std::int64_t first = m.window > 0 ? at(queries.first + f_.mask_offset + 1 - m.window) : 0;
  return {first, end - first};
}

view attention_parts::of_queries(const heads_operand &x, const block_of_queries &b) const {
  const std::int64_t row = row_of(x.strides);
  const std::int64_t first = b.outer * x.strides.batch + b.member * x.strides.head + b.rows.first * row;
  return {x.buffer(), b.items.first, b.items.size, first * size_of(f_.type), row, x.width, b.rows.size};
}
view attention_parts::of_keys(const heads_operand &x, const block_of_queries &b, std::int64_t first,
                              std::int64_t keys) const {
  return {x.buffer(),
          b.items.first,
          b.items.size,
          (b.outer * x.strides.batch + first * x.strides.token) * size_of(f_.type),
          x.strides.token,
          x.width,
          keys};
}
view attention_parts::of_block(std::int32_t buffer, sg_dtype type, std::int64_t items, std::int64_t rows,
                               std::int64_t keys) {
  return {alias(buffer, type, rows, row_bytes(type)), 0, items, 0, pitch(), keys, rows};
}
std::int32_t attention_parts::alias(std::int32_t buffer, sg_dtype type, std::int64_t rows, std::int64_t row) {
  std::int32_t &alias = aliases_.try_emplace({buffer, rows * row}, -1).first->second;
  if (alias < 0) alias = builder_.add_alias(buffer, type, rows * row);
  return alias;
}

void attention_parts::multiply(const view &c, const view &a, sg_transpose op_a, const view &b, sg_transpose op_b,
                               scalar_role alpha, bool adds, std::uint16_t lane) {
  const std::int64_t k = op_a == SG_TRANSPOSE_N ? a.cols : a.rows;
  command made = builder_.multiply(
      {c.rows, c.cols, k, op_a, op_b, f_.compute, alpha, adds ? scalar_role::one : scalar_role::zero}, lane);
  made.views[ops::gemm::a] = a, made.views[ops::gemm::b] = b, made.views[ops::gemm::c] = c;
  flops_ += flops_per_mac(f_.type) * double(c.rows) * double(c.cols) * double(k) * double(c.items);
  builder_.add(made);
}

void attention_parts::convert(const view &c, const view &a, const view &divisors, std::uint16_t lane) {
  command made;
  made.what = ops::convert{};
  made.where = {lane_kind::compute, lane};
  made.views[ops::convert::c] = c, made.views[ops::convert::a] = a, made.views[ops::convert::divisors] = divisors;
  builder_.add(made);
}

void attention_parts::add_weights(const block_of_queries &b, const heads_operand &k, const heads_operand &q,
                                  std::int32_t scores, std::int32_t weights, const view &sums, const range &keys,
                                  std::uint16_t lane) {
  const view products = of_block(scores, score_type_, b.items.size, b.rows.size, keys.size);
  if (f_.width > 0)
    multiply(products, of_keys(k, b, keys.first, keys.size), SG_TRANSPOSE_T, of_queries(q, b), SG_TRANSPOSE_N,
             scalar_role::job, false, lane);
  else
    fill(products, lane);  // products of nothing
  if (f_.masks.exist()) add_mask(b, scores, keys, lane);
  ops::softmax weigh;
  weigh.mask = f_.causal ? SG_MASK_CAUSAL : SG_MASK_NONE;
  if (f_.causal) {
    weigh.mask_rows = l_.folded ? f_.queries : b.rows.size;
    weigh.mask_offset = f_.mask_offset + (l_.folded ? 0 : b.rows.first) - keys.first;
  }
  command softmax;
  softmax.what = weigh;
  softmax.where = {lane_kind::compute, lane};
  softmax.views[ops::softmax::x] = of_stack(scores, b, keys.size);
  softmax.views[ops::softmax::y] = of_stack(weights, b, keys.size);
  softmax.views[ops::softmax::sums] = sums;
  builder_.add(softmax);
}

void attention_parts::add_mask(const block_of_queries &b, std::int32_t scores, const range &keys, std::uint16_t lane) {
  const attention_masks &m = f_.masks;
  ops::score_mask what;
  what.heads = f_.heads, what.kv_heads = f_.kv_heads, what.queries = f_.queries, what.keys = f_.keys;
  what.of_bias = m.bias, what.of_visible = m.visible;
  what.mask = m.from_end ? SG_MASK_CAUSAL_FROM_END : f_.causal ? SG_MASK_CAUSAL : SG_MASK_NONE;
  what.mask_offset = f_.mask_offset, what.window = m.window;
  what.item_rows = b.rows.size, what.first_row = b.rows.first;
  what.first_item = b.outer * l_.items + b.items.first, what.first_head = b.member, what.first_key = keys.first;
  command made;
  made.what = what;
  made.where = {lane_kind::compute, lane};
  made.views[ops::score_mask::scores] = of_stack(scores, b, keys.size);
  const auto whole = [&](std::size_t index, attention_parameter which) {
    const std::int64_t elements = elements_[static_cast<std::size_t>(which)];
    if (elements > 0) made.views[index] = view{static_cast<std::int32_t>(which), 0, 1, 0, elements, elements, 1};
  };
  whole(ops::score_mask::bias, attention_parameter::bias);
  whole(ops::score_mask::visible, attention_parameter::visible);
  whole(ops::score_mask::query_lengths, attention_parameter::query_lengths);
  whole(ops::score_mask::key_lengths, attention_parameter::key_lengths);
  builder_.add(made);
}

// The heads as items, with the tokens of all sequences.
view attention_parts::heads_of(const heads_operand &x, bool of_query, bool of_copy) {
  const std::int64_t rows = sequences_ * (of_query ? f_.queries : f_.keys);
  const std::int32_t buffer = of_copy ? x.copy : static_cast<std::int32_t>(x.which);
  const std::int64_t head = of_copy ? rows * x.width : x.given.head;
  return {builder_.add_alias(buffer, f_.type, head * size_of(f_.type)),
          0,
          heads_,
          0,
          of_copy ? x.width : x.given.token,
          x.width,
          rows};
}

void attention_parts::copy_heads() {
  for (const auto &[list, of_query] : {std::pair{&of_queries_, true}, {&of_keys_, false}})
    for (heads_operand &x : *list) {
      if (!copies_) continue;
      const std::int64_t head = x.strides.head * size_of(f_.type);
      x.copy = builder_.add_device_buffer(f_.type, sequences_ * heads_ * head, head);
      if (!x.is_result) convert(heads_of(x, of_query, true), heads_of(x, of_query, false), {}, 0);
    }
}

void attention_parts::copy_results_back() {
  for (const auto &[list, of_query] : {std::pair{&of_queries_, true}, {&of_keys_, false}})
    for (const heads_operand &x : *list)
      if (copies_ && x.is_result) convert(heads_of(x, of_query, false), heads_of(x, of_query, true), {}, 0);
}

schedule attention_parts::finish(std::string strategy) {
  schedule made = builder_.finish(std::move(strategy));
  made.flops = flops_;
  double bytes = 0;
  const auto set = [&](const heads_operand &x, std::int64_t heads, std::int64_t tokens) {
    bytes += double(f_.batch) * double(heads) * double(tokens) * double(x.width) * double(size_of(f_.type));
  };
  for (const heads_operand &x : of_queries_) set(x, f_.heads, f_.queries);
  for (const heads_operand &x : of_keys_) set(x, f_.kv_heads, f_.keys);
  made.predicted_seconds = simulate(made, model_).seconds;
  const double rate = gemm_rate_of(model_, f_.type, f_.compute) * (model_.lanes_are_cores ? model_.compute_lanes : 1);
  made.bound_seconds = std::max(flops_ / rate, bytes / model_.memory_rate);
  return made;
}

}  // namespace sg
