// SPDX-License-Identifier: Apache-2.0
// Masks of blocks of scores by definition; gaps keep their bytes.
#include "ops/score_mask.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/dtype.hpp"
#include "gemm_case.hpp"

namespace sg::test {
namespace {

constexpr real infinity = std::numeric_limits<real>::infinity();

class score_mask : public conformance {
 protected:
  std::int64_t below(std::int64_t n) { return std::int64_t(random_() % std::uint64_t(n)); }
  void attempt(sg_dtype type, sg_dtype bias_type, bool is_long);

  stream stream_{dev()};
  std::mt19937_64 random_{42};
};

void score_mask::attempt(sg_dtype type, sg_dtype bias_type, bool is_long) {
  auto what = backend_command<sg_backend_score_mask>();
  what.type = type, what.bias_type = bias_type;
  // The attention, and a block of it.
  const std::int64_t batch = 1 + below(3), members = 1 + below(3);
  what.kv_heads = 1 + below(3), what.heads = what.kv_heads * members;
  what.queries = 1 + below(9), what.keys = 1 + below(is_long ? 3000 : 40);
  const bool folded = below(2);
  const std::int64_t rows = folded ? members * what.queries : what.queries, items = batch * what.kv_heads;
  what.first_head = folded ? 0 : below(members);
  what.first_row = below(rows), what.item_rows = 1 + below(rows - what.first_row);
  what.first_item = below(items), what.rows = what.item_rows * (1 + below(items - what.first_item));
  what.first_key = below(what.keys), what.cols = 1 + below(what.keys - what.first_key);
  what.mask = sg_mask(below(3));
  if (what.mask != SG_MASK_NONE) what.mask_offset = below(13) - 6, what.window = below(2) * below(what.keys + 1);

  host_operand scores(type, what.cols, what.rows, below(4), 1);
  scores.poison(), scores.randomise(random_);
  const auto strides = [&](sg_backend_heads &x) {
    std::int64_t reach = what.keys;
    for (const auto &[stride, count] : {std::pair{&x.token, what.queries}, {&x.head, what.heads}, {&x.batch, batch}})
      if (below(3) > 0) *stride = reach + below(3), reach += *stride * (count - 1);
    return reach;
  };
  host_operand bias(bias_type, strides(what.bias), 1, 0, 1);
  bias.randomise(random_);
  for (std::int64_t i = 0; i < bias.rows; ++i)
    if (below(6) == 0) bias.set(0, i, 0, -infinity);
  std::vector<std::uint8_t> visible(std::size_t(strides(what.visible)));
  for (std::uint8_t &each : visible) each = below(3) ? std::uint8_t(1 + below(255)) : 0;
  std::vector<std::int32_t> query_lengths, key_lengths;
  for (std::int64_t b = 0; b < batch; ++b) {
    query_lengths.push_back(std::int32_t(below(what.queries + 4) - 2));
    key_lengths.push_back(std::int32_t(below(what.keys + 4) - 2));
  }

  memory at_scores(dev(), std::int64_t(scores.bytes.size())), at_bias(dev(), std::int64_t(bias.bytes.size()));
  memory at_visible(dev(), std::int64_t(visible.size())), at_queries(dev(), 4 * batch), at_keys(dev(), 4 * batch);
  at_scores.write(stream_, scores.bytes.data()), at_bias.write(stream_, bias.bytes.data());
  at_visible.write(stream_, visible.data());
  at_queries.write(stream_, query_lengths.data()), at_keys.write(stream_, key_lengths.data());
  const bool has_bias = below(2), has_visible = below(2), has_queries = below(2), has_keys = below(2);
  what.scores = at_scores.data(), what.scores_row = scores.ld;
  if (has_bias) what.bias.data = at_bias.data();
  if (has_visible) what.visible.data = at_visible.data();
  if (has_queries) what.query_lengths = reinterpret_cast<const std::int32_t *>(at_queries.data());
  if (has_keys) what.key_lengths = reinterpret_cast<const std::int32_t *>(at_keys.data());
  ASSERT_TRUE(dev()->supports(what.header));
  complete(*dev(), stream_, what);
  host_operand before = scores;
  at_scores.read(stream_, scores.bytes.data());

  for (std::int64_t r = 0; r < what.rows; ++r) {
    const std::int64_t item = what.first_item + r / what.item_rows, row = what.first_row + r % what.item_rows;
    const std::int64_t b = item / what.kv_heads, query = row % what.queries;
    const std::int64_t head = item % what.kv_heads * members + (folded ? row / what.queries : what.first_head);
    const auto at = [&](const sg_backend_heads &x) { return b * x.batch + head * x.head + query * x.token; };
    const auto length = [b](bool exists, const std::vector<std::int32_t> &of, std::int64_t all) {
      return exists ? std::clamp<std::int64_t>(of[std::size_t(b)], 0, all) : all;
    };
    const std::int64_t queries = length(has_queries, query_lengths, what.queries);
    const std::int64_t keys = length(has_keys, key_lengths, what.keys);
    const std::int64_t last = query + what.mask_offset + (what.mask == SG_MASK_CAUSAL_FROM_END ? keys - queries : 0);
    for (std::int64_t c = 0; c < what.cols; ++c) {
      const std::int64_t key = what.first_key + c;
      real wanted = before.get(0, c, r).real();
      if (has_bias) wanted += bias.get(0, at(what.bias) + key, 0).real();
      const bool behind = what.mask != SG_MASK_NONE && (key > last || (what.window > 0 && key <= last - what.window));
      if (query >= queries || key >= keys || behind) wanted = -infinity;
      if (has_visible && visible[std::size_t(at(what.visible) + key)] == 0) wanted = -infinity;
      const real found = scores.get(0, c, r).real();
      const real limit = std::ldexp(1.0L, type == SG_DTYPE_F64 ? -52 : -23) * std::abs(wanted);
      ASSERT_TRUE(found == wanted || std::abs(found - wanted) <= limit)
          << sg::name_of(type) << " bias " << sg::name_of(bias_type) << " " << what.rows << " x " << what.cols << " at "
          << r << ", " << c << ": " << double(found) << " instead of " << double(wanted);
      before.set(0, c, r, scores.get(0, c, r));
    }
  }
  ASSERT_EQ(before.bytes, scores.bytes) << "a gap was written";
}

TEST_P(score_mask, drawn_blocks_of_every_type) {
  for (int turn = 0; turn < 60; ++turn) {
    attempt(SG_DTYPE_F64, SG_DTYPE_F64, turn % 10 == 0);
    for (const sg_dtype bias : {SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16}) attempt(SG_DTYPE_F32, bias, turn % 10 == 0);
    if (HasFailure()) return;
  }
}

// A hidden key's score and bias may be anything.
TEST_P(score_mask, hidden_scores_may_be_nan) {
  std::vector<float> scores(6, NAN), bias = {NAN, NAN, -INFINITY, 1, NAN, NAN};
  const std::vector<std::uint8_t> visible = {1, 1, 1, 1, 0, 1};
  const std::vector<std::int32_t> keys = {5};
  scores[3] = 2;
  memory at_scores(dev(), 24), at_bias(dev(), 24), at_visible(dev(), 6), at_keys(dev(), 4);
  at_scores.write(stream_, scores.data()), at_bias.write(stream_, bias.data());
  at_visible.write(stream_, visible.data()), at_keys.write(stream_, keys.data());
  auto what = backend_command<sg_backend_score_mask>();
  what.type = what.bias_type = SG_DTYPE_F32;
  what.rows = what.item_rows = what.queries = what.heads = what.kv_heads = 1,
  what.cols = what.keys = what.scores_row = 6;
  what.scores = at_scores.data(), what.bias.data = at_bias.data(), what.visible.data = at_visible.data();
  what.key_lengths = reinterpret_cast<const std::int32_t *>(at_keys.data());
  what.mask = SG_MASK_CAUSAL, what.mask_offset = 4, what.window = 3;
  complete(*dev(), stream_, what);
  at_scores.read(stream_, scores.data());
  const float hidden = -INFINITY;
  EXPECT_EQ((std::vector<float>{hidden, hidden, hidden, 3, hidden, hidden}), scores);
}

SG_CONFORMANCE(score_mask);

}  // namespace
}  // namespace sg::test
