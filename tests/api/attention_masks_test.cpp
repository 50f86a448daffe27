// SPDX-License-Identifier: Apache-2.0
// The masks of attention and of its gradients: drawn ones against sums in extended precision, lengths that change
// between the runs of a graph, refused calls.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "../reference/softmax.hpp"
#include "support/drawn_masks.hpp"
#include "support/heads_in_memory.hpp"

namespace sg_test {
namespace {

using vector = std::vector<long double>;

long double masks_tolerance(sg_dtype type) {
  switch (type) {
    case SG_DTYPE_F64: return 1e-12L;
    case SG_DTYPE_F32: return 1e-5L;
    case SG_DTYPE_F16: return 1e-2L;
    default: return 8e-2L;
  }
}

class attention_masks : public on_each_device {
 protected:
  // The operands of both calls, and what the results should be.
  struct both_ways {
    both_ways(sg_context *on, random_source &random, sg_dtype type, const attention_sizes &of)
        : s(of),
          q(on, random, type, s.batch, s.heads, s.queries, s.width),
          k(on, random, type, s.batch, s.kv_heads, s.keys, s.width),
          v(on, random, type, s.batch, s.kv_heads, s.keys, s.value_width),
          o(on, random, type, s.batch, s.heads, s.queries, s.value_width),
          dout(on, random, type, s.batch, s.heads, s.queries, s.value_width),
          dq(on, random, type, s.batch, s.heads, s.queries, s.width),
          dk(on, random, type, s.batch, s.kv_heads, s.keys, s.width),
          dv(on, random, type, s.batch, s.kv_heads, s.keys, s.value_width) {}

    template <class Desc>
    Desc described(Desc desc, sg_dtype type) const {
      desc.q = q.view(), desc.k = k.view(), desc.v = v.view(), desc.dtype = type;
      desc.batch = s.batch, desc.heads = s.heads, desc.kv_heads = s.kv_heads;
      desc.queries = s.queries, desc.keys = s.keys, desc.width = s.width, desc.value_width = s.value_width;
      return desc;
    }

    attention_sizes s;
    heads_in_memory q, k, v, o, dout, dq, dk, dv;
  };
  struct wanted_values {
    vector o, dq, dk, dv;  // in the order of batches, heads, tokens, elements
  };

  static wanted_values wanted(both_ways &x, const drawn_masks &masks) {
    const attention_sizes &s = x.s;
    const auto sized = [](std::int64_t n) { return vector(std::size_t(n)); };
    wanted_values w{sized(s.batch * s.heads * s.queries * s.value_width),
                    sized(s.batch * s.heads * s.queries * s.width), sized(s.batch * s.kv_heads * s.keys * s.width),
                    sized(s.batch * s.kv_heads * s.keys * s.value_width)};
    const long double scale = s.width ? 1 / std::sqrt(static_cast<long double>(s.width)) : 1;
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t i = 0; i < s.queries; ++i) {
          const std::int64_t of = h / (s.heads / s.kv_heads), row = (b * s.heads + h) * s.queries + i;
          vector weights, gradients;
          std::vector<std::int64_t> shown;
          for (std::int64_t j = 0; j < s.keys; ++j) {
            const long double added = masks.added(b, h, i, j);
            if (added == -INFINITY) continue;
            long double score = 0, gradient = 0;
            for (std::int64_t d = 0; d < s.width; ++d) score += x.q.at(b, h, i, d) * x.k.at(b, of, j, d);
            for (std::int64_t d = 0; d < s.value_width; ++d) gradient += x.dout.at(b, h, i, d) * x.v.at(b, of, j, d);
            weights.push_back(scale * score + added), gradients.push_back(gradient), shown.push_back(j);
          }
          const auto count = static_cast<std::int64_t>(shown.size());
          sg_reference::softmax(weights.data(), count, count);
          long double mean = 0;
          for (std::size_t n = 0; n < shown.size(); ++n) mean += weights[n] * gradients[n];
          for (std::size_t n = 0; n < shown.size(); ++n) {
            const std::int64_t key = (b * s.kv_heads + of) * s.keys + shown[n];
            const long double ds = scale * weights[n] * (gradients[n] - mean);
            for (std::int64_t d = 0; d < s.value_width; ++d) {
              w.o[std::size_t(row * s.value_width + d)] += weights[n] * x.v.at(b, of, shown[n], d);
              w.dv[std::size_t(key * s.value_width + d)] += weights[n] * x.dout.at(b, h, i, d);
            }
            for (std::int64_t d = 0; d < s.width; ++d) {
              w.dq[std::size_t(row * s.width + d)] += ds * x.k.at(b, of, shown[n], d);
              w.dk[std::size_t(key * s.width + d)] += ds * x.q.at(b, h, i, d);
            }
          }
        }
    return w;
  }

  void compare(const char *name, heads_in_memory &found, const vector &expected, sg_dtype type, std::int64_t batch,
               std::int64_t heads, std::int64_t tokens, std::int64_t width) {
    found.fetch();
    long double most = 1;
    for (const long double each : expected) most = std::max(most, std::abs(each));
    std::size_t at = 0;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t t = 0; t < tokens; ++t)
          for (std::int64_t d = 0; d < width; ++d, ++at) {
            const long double is = found.at(b, h, t, d);
            ASSERT_LE(std::abs(is - expected[at]), most * masks_tolerance(type))
                << name << " " << b << " " << h << " " << t << " " << d << ": " << is << " not " << expected[at];
          }
  }

  void check(const attention_sizes &s, sg_dtype type, unsigned kinds, std::uint64_t workspace) {
    both_ways x(context_, random_, type, s);
    const drawn_masks masks(context_, random_, type, s, kinds);
    const wanted_values w = wanted(x, masks);
    auto backward = x.described(sg_attention_backward_desc SG_ATTENTION_BACKWARD_DESC_INIT, type);
    backward.dout = x.dout.view(), backward.dq = x.dq.view(), backward.dk = x.dk.view(), backward.dv = x.dv.view();
    backward.workspace = workspace;
    masks.describe(backward);
    ASSERT_OK(sg_attention_backward(context_, &backward, nullptr));
    compare("dq", x.dq, w.dq, type, s.batch, s.heads, s.queries, s.width);
    compare("dk", x.dk, w.dk, type, s.batch, s.kv_heads, s.keys, s.width);
    compare("dv", x.dv, w.dv, type, s.batch, s.kv_heads, s.keys, s.value_width);
    spoil_hidden_keys(x, masks);
    auto forward = x.described(sg_attention_desc SG_ATTENTION_DESC_INIT, type);
    forward.o = x.o.view(), forward.workspace = workspace;
    masks.describe(forward);
    ASSERT_OK(sg_attention(context_, &forward, nullptr));
    compare("o", x.o, w.o, type, s.batch, s.heads, s.queries, s.value_width);
  }

  // Makes the scores of keys that no query has NaN.
  static void spoil_hidden_keys(both_ways &x, const drawn_masks &masks) {
    const attention_sizes &s = x.s;
    const std::int64_t members = s.heads / s.kv_heads;
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.kv_heads; ++h)
        for (std::int64_t j = 0; j < s.keys; ++j) {
          bool is_hidden = true;
          for (std::int64_t n = h * members; n < (h + 1) * members; ++n)
            for (std::int64_t i = 0; i < s.queries; ++i) is_hidden = is_hidden && masks.added(b, n, i, j) == -INFINITY;
          for (std::int64_t d = 0; is_hidden && d < s.width; ++d) x.k.set(b, h, j, d, NAN);
        }
    x.k.write();
  }

  random_source random_{21};
  static constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
};

TEST_P(attention_masks, drawn_masks_of_every_type_shape_and_layout) {
  const auto size = [&](int most) {
    return std::int64_t(random_.below(8) == 0 ? random_.below(2) : 1 + random_.below(most));
  };
  for (int turn = 0; turn < 320; ++turn) {
    attention_sizes s;
    s.batch = size(3), s.kv_heads = 1 + random_.below(3), s.heads = s.kv_heads * size(3);
    s.queries = size(20), s.keys = size(30), s.width = size(9), s.value_width = size(9);
    // One kind alone, or several.
    const unsigned kinds =
        turn % 3 ? unsigned(random_.below(128)) : 1u << random_.below(6) | unsigned(random_.below(2)) * 64;
    const std::uint64_t workspace = random_.below(2) ? 0 : std::uint64_t(1100 + random_.below(5000));
    SCOPED_TRACE(testing::Message() << turn << ": " << s.batch << " " << s.heads << "/" << s.kv_heads << " "
                                    << s.queries << " x " << s.keys << " of " << s.width << ", " << s.value_width
                                    << " masks " << kinds << " workspace " << workspace);
    check(s, types[turn % 4], kinds, workspace);
    if (HasFailure()) return;
  }
}

TEST_P(attention_masks, windows_of_long_sequences_in_blocks) {
  for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_BF16})
    for (const unsigned kinds : {80u, 88u, 127u}) check({1, 4, 2, 90, 100, 4, 4}, type, kinds, 1 << 14);
}

// A limit from the end of sequences that have all tokens is a known one.
TEST_P(attention_masks, from_the_end_without_lengths_is_an_offset) {
  for (const sg_dtype type : {SG_DTYPE_F32, SG_DTYPE_F16}) {
    both_ways x(context_, random_, type, {2, 4, 2, 17, 29, 16, 16});
    auto desc = x.described(sg_attention_desc SG_ATTENTION_DESC_INIT, type);
    desc.o = x.o.view(), desc.mask = SG_MASK_CAUSAL, desc.mask_offset = 29 - 17 - 1;
    ASSERT_OK(sg_attention(context_, &desc, nullptr));
    x.o.fetch();
    const std::vector<unsigned char> expected = x.o.bytes();
    desc.mask = SG_MASK_CAUSAL_FROM_END, desc.mask_offset = -1;
    ASSERT_OK(sg_attention(context_, &desc, nullptr));
    x.o.fetch();
    EXPECT_EQ(expected, x.o.bytes());
  }
}

// One query, whose only key that is shown has the weight 1. Keys are 1, 2, 3, ...; values too.
class masks_of_one_query : public attention_masks {
 protected:
  static constexpr std::int64_t keys = 6;

  void SetUp() override {
    attention_masks::SetUp();
    desc_ = x().described(sg_attention_desc SG_ATTENTION_DESC_INIT, SG_DTYPE_F64);
    desc_.o = x().o.view();
    desc_.mask = SG_MASK_CAUSAL_FROM_END, desc_.window = 1, desc_.key_lengths = length_at(0);
    for (std::int64_t j = 0; j < keys; ++j) x().v.set(0, 0, j, 0, static_cast<long double>(j + 1));
    x().v.write();
  }
  both_ways &x() {
    if (!x_) x_ = std::make_unique<both_ways>(context_, random_, SG_DTYPE_F64, attention_sizes{1, 1, 1, 1, keys, 2, 1});
    return *x_;
  }
  const std::int32_t *length_at(int which) {
    if (!lengths_.data()) lengths_ = operand_memory(context_, 2 * sizeof(std::int32_t));
    return static_cast<std::int32_t *>(lengths_.data()) + which;
  }
  void set_length(int which, std::int32_t value) {
    EXPECT_OK(sg_copy(context_, const_cast<std::int32_t *>(length_at(which)), &value, sizeof value, nullptr));
  }
  long double result() {
    x().o.fetch();
    return x().o.at(0, 0, 0, 0);
  }

  sg_attention_desc desc_;
  operand_memory lengths_;

 private:
  std::unique_ptr<both_ways> x_;
};

TEST_P(masks_of_one_query, lengths_change_between_the_runs_of_a_graph) {
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  ASSERT_OK(sg_attention_async(context_, &desc_, &record, nullptr));
  const auto run = [&] {
    job handle;
    EXPECT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
    EXPECT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    return result();
  };
  for (const std::int32_t length : {3, 4, 1, 0, -7, 6, 100}) {
    set_length(0, length);
    EXPECT_EQ(static_cast<long double>(std::clamp<std::int32_t>(length, 0, keys)), run()) << length;
  }
  set_length(1, 2);
  desc_.key_lengths = length_at(1);
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_ATTENTION, update.desc = &desc_;
  ASSERT_OK(sg_graph_update(graph, 0, &update));
  EXPECT_EQ(2, run());
  desc_.key_lengths = nullptr;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  desc_.key_lengths = length_at(1), desc_.window = 2;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  EXPECT_OK(sg_graph_release(graph));
}

// Calls like a recent one are submitted without the checks.
TEST_P(masks_of_one_query, each_call_has_its_own_masks) {
  set_length(0, 3), set_length(1, 5);
  for (int turn = 0; turn < 3; ++turn)
    for (const int which : {0, 1}) {
      desc_.key_lengths = length_at(which);
      ASSERT_OK(sg_attention(context_, &desc_, nullptr));
      EXPECT_EQ(which == 0 ? 3 : 5, result());
    }
  desc_.key_lengths = nullptr;
  ASSERT_OK(sg_attention(context_, &desc_, nullptr));
  EXPECT_EQ(6, result());
}

TEST_P(masks_of_one_query, wrong_calls_name_the_field) {
  set_length(0, 3);
  operand_memory bytes(context_, 256);
  const auto bad = [&](const char *part, const std::function<void(sg_attention_desc &)> &spoil) {
    sg_attention_desc desc = desc_;
    spoil(desc);
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_attention(context_, &desc, nullptr));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message() << " without " << part;
  };
  using d = sg_attention_desc;
  void *const at = bytes.data();
  bad("desc->mask is 3", [](d &x) { x.mask = sg_mask(3); });
  bad("desc->window is -1", [](d &x) { x.window = -1; });
  bad("desc->window is 2 and desc->mask is none", [](d &x) { x.mask = SG_MASK_NONE, x.window = 2; });
  bad("desc->bias.token_stride is 5; a query has 6 keys", [&](d &x) {
    x.queries = 2, x.q.token_stride = x.o.token_stride = 8, x.bias = {at, 0, 0, 5};
  });
  bad("desc->visible.head_stride is -3", [&](d &x) { x.visible = {at, 0, -3, 0}; });
  bad("desc->bias.data is", [&](d &x) { x.bias = {static_cast<char *>(at) + 4, 0, 0, 0}; });
  bad("desc->key_lengths is",
      [&](d &x) { x.key_lengths = reinterpret_cast<std::int32_t *>(static_cast<char *>(at) + 2); });
  bad("desc->o (", [&](d &x) { x.o.data = x.bias.data = at; });
  bad("desc->visible (", [](d &x) { x.visible = {x.o.data, 0, 0, 0}; });
  bad("desc->query_lengths (", [](d &x) { x.query_lengths = static_cast<std::int32_t *>(x.o.data); });

  auto backward = x().described(sg_attention_backward_desc SG_ATTENTION_BACKWARD_DESC_INIT, SG_DTYPE_F64);
  backward.dout = x().dout.view(), backward.dk = x().dk.view();
  backward.key_lengths = static_cast<std::int32_t *>(backward.dk.data);
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_attention_backward(context_, &backward, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "desc->key_lengths (")) << sg_last_error_message();
  ASSERT_OK(sg_attention(context_, &desc_, nullptr));
  EXPECT_EQ(3, result());
}

ON_EACH_DEVICE(attention_masks);
ON_EACH_DEVICE(masks_of_one_query);

}  // namespace
}  // namespace sg_test
