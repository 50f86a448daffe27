// SPDX-License-Identifier: Apache-2.0
#include "plan/layers/attention.hpp"

#include <algorithm>
#include <map>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "plan/gemm/schedule_builder.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {
namespace {

constexpr operand_name of_k = operand_name::a, of_q = operand_name::b, of_o = operand_name::c,
                       of_v = operand_name::bias;

// Scores for each lane: on cores they stay in a cache.
constexpr std::int64_t usual_workspace = std::int64_t(256) << 20, usual_workspace_of_core = std::int64_t(1) << 20;
// Fewer queries make GEMMs that reuse the keys too little.
constexpr std::int64_t least_queries = 128, least_queries_of_core = 32;
// A causal mask spares the keys behind a block of queries, so that smaller blocks compute less.
constexpr std::int64_t causal_blocks = 8;

// Attention as loops: `outer` times, for each of `members`, items that are a batch of GEMMs.
struct loops {
  std::int64_t items = 1, outer = 1;
  std::int64_t members = 1;  // query heads with the same keys, unless they are rows of one matrix
  std::int64_t rows = 1;     // of such a matrix; otherwise queries
  bool folded = false;
  std::int64_t item_q = 0, item_k = 0, item_v = 0, item_o = 0;  // elements from item to item
  std::int64_t row_q = 0, row_o = 0;                            // and from row to row
};

loops loops_of(const attention_form &f) {
  loops l;
  const std::int64_t members = f.heads / f.kv_heads;
  if (f.kv_heads == 1) {
    l.items = f.batch;
    l.item_q = f.q.batch, l.item_k = f.k.batch, l.item_v = f.v.batch, l.item_o = f.o.batch;
  } else {
    l.items = f.kv_heads;
    l.item_q = members * f.q.head, l.item_k = f.k.head, l.item_v = f.v.head, l.item_o = members * f.o.head;
    const bool merges = f.q.batch == f.kv_heads * l.item_q && f.k.batch == f.kv_heads * l.item_k &&
                        f.v.batch == f.kv_heads * l.item_v && f.o.batch == f.kv_heads * l.item_o;
    (merges ? l.items : l.outer) *= f.batch;
  }
  l.row_q = f.q.token, l.row_o = f.o.token;
  const bool one_query = f.queries == 1;
  l.folded = members > 1 && (one_query || (f.q.head == f.queries * f.q.token && f.o.head == f.queries * f.o.token));
  l.members = l.folded ? 1 : members;
  l.rows = l.folded ? members * f.queries : f.queries;
  if (l.folded && one_query) l.row_q = f.q.head, l.row_o = f.o.head;
  return l;
}

void set_operand_bytes(schedule &s, const attention_form &f) {
  s.buffers[int(of_q)].bytes = head_bytes(f, f.q, f.heads, f.queries, f.width);
  s.buffers[int(of_k)].bytes = head_bytes(f, f.k, f.kv_heads, f.keys, f.width);
  s.buffers[int(of_v)].bytes = head_bytes(f, f.v, f.kv_heads, f.keys, f.value_width);
  s.buffers[int(of_o)].bytes = head_bytes(f, f.o, f.heads, f.queries, f.value_width);
}

double operand_elements(const attention_form &f) {
  const double ofheads = double(f.heads) * double(f.queries), ofkv = double(f.kv_heads) * double(f.keys);
  return double(f.batch) * (ofheads + ofkv) * double(f.width + f.value_width);
}

class attention_build {
 public:
  attention_build(const attention_form &f, const device_model &model, int lanes)
      : f_(f), model_(model), l_(loops_of(f)), score_type_(accumulator_of(f.type)), builder_(problem_of()) {
    choose_blocks(lanes);
    for (int lane = 0; lane < lanes_; ++lane) {
      scores_.push_back(builder_.add_device_buffer(score_type_, block_bytes(score_type_)));
      weights_.push_back(score_type_ == f.type ? scores_.back()
                                               : builder_.add_device_buffer(f.type, block_bytes(f.type)));
    }
  }

  schedule run() {
    std::int64_t next = 0;
    for (std::int64_t outer = 0; outer < l_.outer; ++outer)
      for (const range &items : cut(l_.items, ceil_div(l_.items, items_)))
        for (std::int64_t member = 0; member < l_.members; ++member)
          for (std::int64_t row = 0; row < l_.rows; row += rows_)
            add_block({outer, member, items, {row, std::min(rows_, l_.rows - row)}}, std::uint16_t(next++ % lanes_));
    schedule made = builder_.finish("attention " + std::to_string(next) + (next == 1 ? " block" : " blocks"));
    made.flops = flops_;
    set_operand_bytes(made, f_);
    made.predicted_seconds = simulate(made, model_).seconds;
    const double rate = gemm_rate_of(model_, f_.type, f_.compute) * (model_.lanes_are_cores ? model_.compute_lanes : 1);
    made.bound_seconds = std::max(flops_ / rate, operand_elements(f_) * double(size_of(f_.type)) / model_.memory_rate);
    return made;
  }

 private:
  struct block_of_queries {
    std::int64_t outer, member;
    range items, rows;
  };

  std::vector<problem> problem_of() const {
    problem p;
    const auto set = [&](operand &x, std::int64_t item) { x.type = f_.type, x.item_stride = item; };
    set(p.a, l_.item_k), set(p.b, l_.item_q), set(p.c, l_.item_o), set(p.bias, l_.item_v);
    p.compute = f_.compute;
    p.no_multiply = true;  // the builder's commands have their own sizes
    return {p};
  }

  std::int64_t pitch() const { return round_up(std::max<std::int64_t>(1, f_.keys), 16); }
  std::int64_t row_bytes(sg_dtype type) const { return checked_mul(pitch(), size_of(type), "scores"); }
  std::int64_t row_bytes() const { return row_bytes(score_type_) + (score_type_ == f_.type ? 0 : row_bytes(f_.type)); }
  std::int64_t block_bytes(sg_dtype type) const {
    return checked_mul(checked_mul(items_, rows_, "scores"), row_bytes(type), "scores");
  }
  std::int64_t blocks() const { return l_.outer * l_.members * ceil_div(l_.items, items_) * ceil_div(l_.rows, rows_); }

  // As many queries and heads as the workspace of a lane has room for. On cores each lane should have blocks.
  void choose_blocks(int lanes) {
    const bool cores = model_.lanes_are_cores;
    const std::int64_t usual =
        cores ? usual_workspace_of_core * lanes : std::min(usual_workspace, model_.usable_memory() / 4);
    const std::int64_t workspace = f_.workspace > 0 ? f_.workspace : usual;
    const std::int64_t least_bytes =
        round_up(row_bytes(score_type_), 256) + (score_type_ == f_.type ? 0 : round_up(row_bytes(f_.type), 256));
    if (least_bytes > workspace)
      throw error(SG_STATUS_OUT_OF_MEMORY, "the scores of one query need %lld bytes of workspace; the limit is %lld",
                  static_cast<long long>(least_bytes), static_cast<long long>(workspace));
    lanes_ = int(std::clamp<std::int64_t>(workspace / least_bytes, 1, cores ? lanes : std::min(lanes, 2)));
    const std::int64_t room = std::max<std::int64_t>(1, (workspace / lanes_ - 2 * 256) / row_bytes());
    const std::int64_t least = cores ? least_queries_of_core : least_queries;
    items_ = l_.items, rows_ = l_.rows;
    if (f_.causal) rows_ = std::clamp(ceil_div(rows_, causal_blocks), std::min(rows_, 2 * least), rows_);
    while (items_ > 1 && (items_ * std::min(rows_, least) > room || (cores && blocks() < lanes_)))
      items_ = ceil_div(items_, 2);
    while (rows_ > 1 && (items_ * rows_ > room || (cores && rows_ > least && blocks() < lanes_)))
      rows_ = ceil_div(rows_, 2);
    if (l_.folded && rows_ < l_.rows) unfold();
    if (blocks() > most_asked_commands / 3)
      throw error(SG_STATUS_OUT_OF_MEMORY, "with a workspace of %lld bytes an attention would have %lld blocks",
                  static_cast<long long>(workspace), static_cast<long long>(blocks()));
    lanes_ = int(std::min<std::int64_t>(lanes_, blocks()));
  }

  // A block of a folded matrix would begin in the middle of a head: each head is a matrix of its own then.
  void unfold() {
    l_.folded = false;
    l_.members = f_.heads / f_.kv_heads;
    l_.rows = f_.queries;
    l_.row_q = f_.q.token, l_.row_o = f_.o.token;
    rows_ = std::min(rows_, l_.rows);
  }

  std::int64_t visible_keys(const range &rows) const {
    if (!f_.causal) return f_.keys;
    const std::int64_t last = l_.folded ? f_.queries : rows.end();
    return std::clamp<std::int64_t>(last + f_.mask_offset, 0, f_.keys);
  }

  view of_queries(operand_name name, const block_of_queries &b, const head_strides &x, std::int64_t row,
                  std::int64_t width) const {
    const std::int64_t first = b.outer * x.batch + b.member * x.head + b.rows.first * row;
    return {int(name), b.items.first, b.items.size, first * size_of(f_.type), row, width, b.rows.size};
  }
  view of_keys(operand_name name, const block_of_queries &b, const head_strides &x, std::int64_t width,
               std::int64_t keys) const {
    return {int(name), b.items.first, b.items.size, b.outer * x.batch * size_of(f_.type), x.token, width, keys};
  }
  // Items of scores or weights, `rows` rows each, one after the other.
  view of_block(std::int32_t buffer, sg_dtype type, std::int64_t items, std::int64_t rows, std::int64_t keys) {
    std::int32_t &alias = aliases_.try_emplace({buffer, rows}, -1).first->second;
    if (alias < 0) alias = builder_.add_alias(buffer, type, rows * row_bytes(type));
    return {alias, 0, items, 0, pitch(), keys, rows};
  }

  command gemm(std::int64_t m, std::int64_t n, std::int64_t k, sg_op op_a, scalar_role alpha, std::uint16_t lane) {
    flops_ += flops_per_mac(f_.type) * double(m) * double(n) * double(k);
    command c = builder_.gemm(0, {0, m}, {0, n}, {0, k}, lane);
    ops::gemm &what = *c.as<ops::gemm>();
    what.op_a = op_a, what.op_b = SG_OP_N;
    what.alpha = alpha, what.beta = scalar_role::zero;
    return c;
  }

  void add_block(const block_of_queries &b, std::uint16_t lane) {
    const std::int64_t keys = visible_keys(b.rows), items = b.items.size;
    const view out = of_queries(of_o, b, f_.o, l_.row_o, f_.value_width);
    if (keys == 0) {
      builder_.add(builder_.scale(0, out, scalar_role::zero, lane));
      return;
    }
    const view scores = of_block(scores_[lane], score_type_, items, b.rows.size, keys);
    const double flops_before = flops_;
    if (f_.width > 0) {
      command c = gemm(keys, b.rows.size, f_.width, SG_OP_T, scalar_role::job, lane);
      c.views[ops::gemm::a] = of_keys(of_k, b, f_.k, f_.width, keys);
      c.views[ops::gemm::b] = of_queries(of_q, b, f_.q, l_.row_q, f_.width);
      c.views[ops::gemm::c] = scores;
      builder_.add(c);
    } else {  // products of nothing
      builder_.add(builder_.scale(0, scores, scalar_role::zero, lane));
    }
    ops::softmax weigh;
    weigh.mask = f_.causal ? SG_MASK_CAUSAL : SG_MASK_NONE;
    if (f_.causal) {
      weigh.mask_rows = l_.folded ? f_.queries : b.rows.size;
      weigh.mask_offset = f_.mask_offset + (l_.folded ? 0 : b.rows.first);
    }
    command softmax;
    softmax.what = weigh;
    softmax.where = {lane_kind::compute, lane};
    const auto stack = [&](std::int32_t buffer) { return view{buffer, 0, 1, 0, pitch(), keys, items * b.rows.size}; };
    softmax.views[ops::softmax::x] = stack(scores_[lane]);
    softmax.views[ops::softmax::y] = stack(weights_[lane]);
    builder_.add(softmax);
    command c = gemm(f_.value_width, b.rows.size, keys, SG_OP_N, scalar_role::one, lane);
    c.views[ops::gemm::a] = of_keys(of_v, b, f_.v, f_.value_width, keys);
    c.views[ops::gemm::b] = of_block(weights_[lane], f_.type, items, b.rows.size, keys);
    c.views[ops::gemm::c] = out;
    builder_.add(c);
    flops_ = flops_before + (flops_ - flops_before) * double(items);
  }

  const attention_form &f_;
  const device_model &model_;
  loops l_;
  sg_dtype score_type_;
  schedule_builder builder_;
  int lanes_ = 1;
  std::int64_t items_ = 1, rows_ = 1;                                      // of a block
  std::vector<std::int32_t> scores_, weights_;                             // by lane
  std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> aliases_;  // by buffer and rows of an item
  double flops_ = 0;
};

}  // namespace

std::int64_t head_bytes(const attention_form &f, const head_strides &x, std::int64_t heads, std::int64_t tokens,
                        std::int64_t width) {
  if (f.batch == 0 || heads == 0 || tokens == 0 || width == 0) return 0;
  std::int64_t elements = width;
  for (const auto &[count, stride] :
       {std::pair{f.batch, x.batch}, std::pair{heads, x.head}, std::pair{tokens, x.token}})
    elements = checked_add(elements, checked_mul(count - 1, stride, "an operand"), "an operand");
  return checked_mul(elements, size_of(f.type), "an operand");
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
  problem p;
  for (operand *each : {&p.a, &p.b, &p.c, &p.bias}) each->type = f.type;
  p.no_multiply = true;
  const std::vector<problem> problems = {p};
  schedule_builder builder(problems);
  command c;
  c.what = fused(f);
  const auto whole = [&](operand_name name, const head_strides &x, std::int64_t heads, std::int64_t tokens,
                         std::int64_t width) {
    const std::int64_t elements = head_bytes(f, x, heads, tokens, width) / size_of(f.type);
    return view{int(name), 0, 1, 0, std::max<std::int64_t>(1, elements), elements, 1};
  };
  c.views[ops::attention::o] = whole(of_o, f.o, f.heads, f.queries, f.value_width);
  c.views[ops::attention::q] = whole(of_q, f.q, f.heads, f.queries, f.width);
  c.views[ops::attention::k] = whole(of_k, f.k, f.kv_heads, f.keys, f.width);
  c.views[ops::attention::v] = whole(of_v, f.v, f.kv_heads, f.keys, f.value_width);
  builder.add(c);
  schedule made = builder.finish("attention, one kernel");
  made.flops = ops::flops_of(fused(f));
  set_operand_bytes(made, f);
  made.predicted_seconds = simulate(made, model).seconds;
  made.bound_seconds = std::max(made.flops / gemm_rate_of(model, f.type, f.compute),
                                operand_elements(f) * double(size_of(f.type)) / model.memory_rate);
  return made;
}

schedule build_attention(const attention_form &f, const device_model &model, int lanes) {
  if (gemm_rate_of(model, f.type, f.compute) <= 0)
    throw error(SG_STATUS_UNSUPPORTED, "device '%.64s' has no %s GEMM", model.name.c_str(), name_of(f.type));
  return attention_build(f, model, lanes).run();
}

}  // namespace sg
