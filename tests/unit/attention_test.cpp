// SPDX-License-Identifier: Apache-2.0
// Schedules of attention: free of hazards, within the workspace, each token of O written once, for any layout.
#include "plan/layers/attention.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>

#include "base/error.hpp"
#include "plan/schedule/hazard.hpp"
#include "problems.hpp"

namespace sg::test {
namespace {

// Batches, heads and tokens in any order, with gaps.
head_strides any_strides(std::mt19937 &random, std::int64_t batch, std::int64_t heads, std::int64_t tokens,
                         std::int64_t width) {
  head_strides x;
  std::array<std::pair<std::int64_t, std::int64_t *>, 3> dimensions = {
      std::pair{batch, &x.batch}, {heads, &x.head}, {tokens, &x.token}};
  std::shuffle(dimensions.begin(), dimensions.end(), random);
  std::int64_t reach = width;
  for (const auto &[count, stride] : dimensions) {
    *stride = reach + (random() % 3 == 0 ? std::int64_t(random() % 5) : 0);
    reach = *stride * count;
  }
  return x;
}

std::string text(const attention_form &f) {
  std::ostringstream out;
  out << f.batch << " " << f.heads << "/" << f.kv_heads << " " << f.queries << " x " << f.keys << " causal " << f.causal
      << " " << f.mask_offset << " window " << f.masks.window << " workspace " << f.workspace << " o " << f.o.batch
      << " " << f.o.head << " " << f.o.token;
  return out.str();
}

// By the offset of its first element: how often each token of an operand is written.
std::map<std::int64_t, int> writes_to(const schedule &s, std::int32_t slot) {
  std::map<std::int64_t, int> writes;
  const std::int64_t size = size_of(s.buffers[std::size_t(slot)].type);
  for (const command &c : s.commands) {
    const view &o = c.views[0];
    if (o.buffer != slot) continue;
    for (std::int64_t item = 0; item < o.items; ++item)
      for (std::int64_t row = 0; row < o.cols; ++row)
        ++writes[((o.item + item) * s.buffers[std::size_t(slot)].item_stride + o.offset) / size + row * o.ld];
  }
  return writes;
}

void check(const attention_form &f, const device_model &model, int lanes) {
  const schedule s = build_attention(f, model, lanes);
  const auto hazards = check_hazards(s);
  ASSERT_TRUE(hazards.empty()) << text(f) << ": " << hazards.front().text;
  EXPECT_LE(s.device_bytes, f.workspace > 0 ? f.workspace : model.usable_memory()) << text(f);
  EXPECT_LE(s.lanes[int(lane_kind::compute)], lanes);
  std::map<std::int64_t, int> wanted;
  for (std::int64_t b = 0; b < f.batch; ++b)
    for (std::int64_t h = 0; h < f.heads; ++h)
      for (std::int64_t t = 0; t < f.queries; ++t) wanted[b * f.o.batch + h * f.o.head + t * f.o.token] = 1;
  EXPECT_EQ(wanted, writes_to(s, std::int32_t(attention_parameter::o))) << text(f);
  EXPECT_LT(0, s.predicted_seconds);
}

// Cores that are so slow that the smallest attention is worth a lane of each.
device_model slow_cores(int count) {
  device_model m = cores(count);
  for (auto &each : m.rates) each.flops_per_second /= 1e7;
  return m;
}

attention_form any_form(std::mt19937 &random, int turn) {
  const auto size = [&](std::int64_t most) { return std::int64_t(1 + random() % std::uint32_t(most)); };
  attention_form f;
  f.batch = size(3), f.kv_heads = size(3), f.heads = f.kv_heads * size(3);
  f.queries = size(40), f.keys = size(60) - 1, f.width = size(9) - 1, f.value_width = size(9);
  constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
  f.type = types[turn % 4];
  f.q = any_strides(random, f.batch, f.heads, f.queries, f.width);
  f.k = any_strides(random, f.batch, f.kv_heads, f.keys, f.width);
  f.v = any_strides(random, f.batch, f.kv_heads, f.keys, f.value_width);
  f.o = any_strides(random, f.batch, f.heads, f.queries, f.value_width);
  f.causal = random() % 2 == 0, f.mask_offset = f.causal ? std::int64_t(random() % 41) - 20 : 0;
  f.workspace = random() % 3 == 0 ? 0 : 1024 + std::int64_t(random() % 20000);
  attention_masks &m = f.masks;
  if (f.keys == 0 || random() % 2 == 0) return f;
  m.has_bias = random() % 2, m.has_visible = random() % 2;
  m.has_query_lengths = random() % 2, m.has_key_lengths = random() % 2;
  if (m.has_bias) m.bias = any_strides(random, f.batch, f.heads, f.queries, f.keys);
  if (m.has_visible) m.visible = {0, 0, random() % 2 ? f.keys : 0};
  if (f.causal && random() % 2) m.window = size(60);
  if (f.causal && (m.has_query_lengths || m.has_key_lengths) && random() % 2) f.causal = false, m.from_end = true;
  return f;
}

TEST(attention, every_form_is_sound) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 2000; ++turn) {
    check(any_form(random, turn), turn % 2 == 0 ? h200() : slow_cores(3), 1 + turn % 4);
    if (testing::Test::HasFailure()) return;
  }
}

// Free of hazards; each token of dQ is written once, and each of dK and dV, of the accumulator's type, at least once.
TEST(attention, every_form_of_the_gradients_is_sound) {
  std::mt19937 random(4);
  for (int turn = 0; turn < 3000; ++turn) {
    attention_form f = any_form(random, turn);
    if (f.keys == 0) continue;
    f.dout = f.o;
    f.dq = any_strides(random, f.batch, f.heads, f.queries, f.width);
    f.dk = any_strides(random, f.batch, f.kv_heads, f.keys, f.width);
    f.dv = any_strides(random, f.batch, f.kv_heads, f.keys, f.value_width);
    f.computes_dq = f.width > 0 && random() % 4 > 0, f.computes_dk = f.width > 0 && random() % 4 > 0;
    f.computes_dv = random() % 4 > 0 || !(f.computes_dq || f.computes_dk);
    const int lanes = 1 + turn % 4;
    const schedule s = build_attention_backward(f, turn % 2 == 0 ? h200() : slow_cores(3), lanes);
    const auto hazards = check_hazards(s);
    ASSERT_TRUE(hazards.empty()) << text(f) << ": " << hazards.front().text;
    EXPECT_LE(s.lanes[int(lane_kind::compute)], lanes);
    if (f.computes_dq) {
      std::map<std::int64_t, int> wanted;
      for (std::int64_t b = 0; b < f.batch; ++b)
        for (std::int64_t h = 0; h < f.heads; ++h)
          for (std::int64_t t = 0; t < f.queries; ++t) wanted[b * f.dq.batch + h * f.dq.head + t * f.dq.token] = 1;
      EXPECT_EQ(wanted, writes_to(s, std::int32_t(attention_parameter::dq))) << text(f);
    }
    const auto expect_keys = [&](const head_strides &x, attention_parameter which) {
      std::map<std::int64_t, int> written = writes_to(s, std::int32_t(which)), wanted;
      for (auto &[offset, count] : written) count = std::min(count, 1);
      for (std::int64_t b = 0; b < f.batch; ++b)
        for (std::int64_t h = 0; h < f.kv_heads; ++h)
          for (std::int64_t t = 0; t < f.keys; ++t) wanted[b * x.batch + h * x.head + t * x.token] = 1;
      EXPECT_EQ(wanted, written) << text(f);
    };
    if (f.computes_dk) expect_keys(f.dk, attention_parameter::dk);
    if (f.computes_dv) expect_keys(f.dv, attention_parameter::dv);
    if (testing::Test::HasFailure()) return;
  }
}

attention_form dense(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t queries,
                     std::int64_t keys, std::int64_t width) {
  attention_form f;
  f.batch = batch, f.heads = heads, f.kv_heads = kv_heads, f.queries = queries, f.keys = keys;
  f.width = f.value_width = width;
  f.q = f.o = {heads * queries * width, queries * width, width};
  f.k = f.v = {kv_heads * keys * width, keys * width, width};
  f.type = SG_DTYPE_BF16;
  return f;
}

// Heads of all batches are one batch of GEMMs; query heads with the same keys are the rows of one.
TEST(attention, dense_heads_are_four_commands) {
  EXPECT_EQ(4u, build_attention(dense(4, 8, 8, 64, 64, 64), h200(), 1).commands.size());
  EXPECT_EQ(4u, build_attention(dense(4, 8, 2, 64, 64, 64), h200(), 1).commands.size());
  EXPECT_EQ(4u, build_attention(dense(4, 32, 8, 1, 4096, 128), h200(), 4).commands.size());
  EXPECT_EQ(4u, build_attention(dense(4, 8, 1, 16, 64, 64), h200(), 1).commands.size());
}

// Interleaved heads of several sequences are copied to where they are one batch, on a GPU.
TEST(attention, interleaved_heads_are_copied_into_one_batch) {
  attention_form f = dense(4, 8, 8, 64, 64, 64);
  f.type = SG_DTYPE_F32;
  f.q = f.k = f.v = f.o = {64 * 8 * 64, 64, 8 * 64};
  const schedule made = build_attention(f, h200(), 1);
  EXPECT_EQ(7u, made.commands.size());  // three copies, two GEMMs, a softmax, a copy
  EXPECT_TRUE(check_hazards(made).empty());
  attention_form gradients = f;
  gradients.dout = f.o, gradients.dq = f.q, gradients.dk = gradients.dv = f.k;
  gradients.computes_dq = gradients.computes_dk = gradients.computes_dv = true;
  const schedule backward = build_attention_backward(gradients, h200(), 1);
  EXPECT_EQ(14u, backward.commands.size());  // four copies, five GEMMs, two of a softmax, three copies
  EXPECT_TRUE(check_hazards(backward).empty());
  f.workspace = 1 << 20;  // leaves no room for copies
  EXPECT_LT(7u, build_attention(f, h200(), 1).commands.size());
  f.workspace = 0;
  f.k.batch = f.v.batch = 2 * f.k.batch;  // sequences are apart
  EXPECT_EQ(12u, build_attention(f, h200(), 1).commands.size());
}

TEST(attention, a_long_sequence_stays_in_its_workspace) {
  attention_form f = dense(1, 16, 16, 65536, 65536, 128);
  const schedule whole = build_attention(f, h200(), 4);
  EXPECT_LE(whole.device_bytes, std::int64_t(256) << 20);
  EXPECT_EQ(2, whole.lanes[int(lane_kind::compute)]);
  f.causal = true;
  const schedule causal = build_attention(f, h200(), 4);
  EXPECT_LT(causal.flops, 0.6 * whole.flops);
  f.workspace = 100;
  try {
    build_attention(f, h200(), 4);
    FAIL();
  } catch (const error &e) {
    EXPECT_EQ(SG_STATUS_OUT_OF_MEMORY, e.status());
  }
}

// Every core has work.
TEST(attention, cores_share_the_heads_and_queries) {
  EXPECT_EQ(8, build_attention(dense(1, 2, 2, 512, 512, 64), cores(8), 8).lanes[int(lane_kind::compute)]);
  EXPECT_EQ(8, build_attention(dense(8, 1, 1, 16, 512, 64), cores(8), 8).lanes[int(lane_kind::compute)]);
  // A sentence of a few words: one block on one core.
  const schedule few = build_attention(dense(1, 12, 12, 16, 16, 32), cores(8), 8);
  EXPECT_EQ(1, few.lanes[int(lane_kind::compute)]);
  EXPECT_EQ(4u, few.commands.size());
}

}  // namespace
}  // namespace sg::test
