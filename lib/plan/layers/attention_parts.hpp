// SPDX-License-Identifier: Apache-2.0
// Shared by the schedules of attention and of its gradients: loops over heads and queries, blocks, views, GEMMs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/layers/attention.hpp"
#include "plan/schedule/schedule_builder.hpp"

namespace sg {

// Attention as loops: `outer` times, for each of `members`, items that are a batch of GEMMs.
struct attention_loops {
  std::int64_t items = 1, outer = 1;
  std::int64_t members = 1;  // query heads with the same keys, unless they are rows of one matrix
  std::int64_t rows = 1;     // of such a matrix; otherwise queries
  bool folded = false;
  bool items_are_heads = false;  // otherwise batches
};

struct heads_operand {
  attention_parameter which;
  head_strides strides;
  std::int64_t width;
  bool is_result = false;
  head_strides given{};    // of the parameter
  std::int32_t copy = -1;  // a buffer that takes the parameter's place
  std::int32_t buffer() const noexcept { return copy >= 0 ? copy : static_cast<std::int32_t>(which); }
};

class attention_parts {
 public:
  using operand_list = std::vector<heads_operand>;
  // A block's row of a lane's memory: `wide` elements of the accumulator's type, `copies` rows of scores of the type,
  // and a sum of f32 or none.
  struct row_memory {
    std::int64_t wide;
    int copies;
    bool has_sum = false;
  };

  // All operands with tokens of queries, and those with tokens of keys.
  struct operand_lists {
    operand_list of_queries, of_keys;
  };

  // On a GPU, heads of interleaved tokens, which would be a batch of GEMMs for each sequence, are copied to where they
  // are one batch, if the workspace is the usual one.
  attention_parts(const attention_form &f, const device_model &model, int lanes, const operand_lists &operands,
                  const row_memory &memory);

 protected:
  struct block_of_queries {
    std::int64_t outer, member;
    range items, rows;
  };

  // As many queries and heads as the workspace of a lane has room for. On cores each lane should have blocks, or, by
  // items, items of its own.
  void choose_blocks(int lanes, bool by_items);
  // Keys that a block of these rows may see.
  range visible_keys(const range &rows) const;
  std::int64_t row_of(const head_strides &x) const noexcept {  // elements from row to row
    return l_.folded && f_.queries == 1 ? x.head : x.token;
  }
  view of_queries(const heads_operand &x, const block_of_queries &b) const;
  view of_keys(const heads_operand &x, const block_of_queries &b, std::int64_t first, std::int64_t keys) const;
  // Items of scores or weights, `rows` rows each, one after the other.
  view of_block(std::int32_t buffer, sg_dtype type, std::int64_t items, std::int64_t rows, std::int64_t keys);
  view of_stack(std::int32_t buffer, const block_of_queries &b, std::int64_t keys) const {  // as one matrix
    return {buffer, 0, 1, 0, pitch(), keys, b.items.size * b.rows.size};
  }
  std::int64_t block_bytes(sg_dtype type) const { return bytes_of_rows(row_bytes(type)); }
  std::int64_t wide_block_bytes() const { return bytes_of_rows(wide_row_bytes()); }
  std::int64_t bytes_of_rows(std::int64_t row) const;  // of a block
  std::int32_t alias(std::int32_t buffer, sg_dtype type, std::int64_t rows, std::int64_t row);

  // c = alpha * op_a(a) * op_b(b) (+ c)
  void multiply(const view &c, const view &a, sg_transpose op_a, const view &b, sg_transpose op_b, scalar_role alpha,
                bool adds, std::uint16_t lane);
  void fill(const view &c, std::uint16_t lane) { builder_.add(builder_.scale(c, scalar_role::zero, lane)); }
  // C of a block's queries = A, from item to item. `divisors`: of each row, if it exists.
  void convert(const view &c, const view &a, const view &divisors, std::uint16_t lane);
  // The scores of a block, or zeros for tokens of no elements; then the weights, without the division by their sums if
  // `sums` exists.
  void add_weights(const block_of_queries &b, const heads_operand &k, const heads_operand &q, std::int32_t scores,
                   std::int32_t weights, const view &sums, const range &keys, std::uint16_t lane);

  // The operands' copies, before the first block and after the last; nothing, if there are none.
  void copy_heads();
  void copy_results_back();
  schedule finish(std::string strategy);

  const bool copies_;
  const attention_form f_;  // with copies: of one sequence that has all heads
  const device_model &model_;
  operand_list of_queries_, of_keys_;
  attention_loops l_;
  sg_dtype score_type_;
  schedule_builder builder_;
  row_memory memory_;
  int lanes_ = 1;
  std::int64_t items_ = 1, rows_ = 1;  // of a block

 private:
  std::int64_t pitch() const;
  std::int64_t row_bytes(sg_dtype type) const;
  std::int64_t wide_row_bytes() const;
  std::int64_t least_bytes() const;  // a lane's memory for one row
  std::int64_t row_bytes() const {
    return wide_row_bytes() + memory_.copies * row_bytes(f_.type) + (memory_.has_sum ? size_of(SG_DTYPE_F32) : 0);
  }
  std::int64_t blocks(bool by_items) const;
  int lanes_worth(int lanes) const;  // on cores
  std::int64_t item_of(const heads_operand &x, bool of_query) const noexcept;
  void add_parameters(const attention_form &given);
  view heads_of(const heads_operand &x, bool of_query, bool of_copy);
  void add_mask(const block_of_queries &b, std::int32_t scores, const range &keys, std::uint16_t lane);
  void unfold();

  std::array<std::int64_t, attention_parameters> elements_{};              // of the masks, by parameter
  std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> aliases_;  // by buffer and bytes of an item
  std::int64_t sequences_ = 1, heads_ = 1;                                 // of the parameters
  double flops_ = 0;
};

}  // namespace sg
