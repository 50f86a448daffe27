// SPDX-License-Identifier: Apache-2.0
// Attention: every type and layout against sums in extended precision, small workspaces, order, graphs, refused calls.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "../reference/softmax.hpp"
#include "support/heads_in_memory.hpp"

namespace sg_test {
namespace {

using long_double = long double;

struct shape {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, width = 1, value_width = 1;
};

class attention : public on_each_device {
 protected:
  sg_attention_desc described(const shape &s, sg_dtype type) {
    sg_attention_desc desc = SG_ATTENTION_DESC_INIT;
    desc.dtype = type;
    desc.batch = s.batch, desc.heads = s.heads, desc.kv_heads = s.kv_heads;
    desc.queries = s.queries, desc.keys = s.keys, desc.width = s.width, desc.value_width = s.value_width;
    return desc;
  }

  // Of one head, token by token.
  static std::vector<long_double> values_of(heads_in_memory &x, std::int64_t batch, std::int64_t head,
                                            std::int64_t tokens, std::int64_t width) {
    std::vector<long_double> values;
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t d = 0; d < width; ++d) values.push_back(x.at(batch, head, t, d));
    return values;
  }

  void check(const shape &s, sg_dtype type, const std::function<void(sg_attention_desc &)> &change = {}) {
    heads_in_memory q(context_, random_, type, s.batch, s.heads, s.queries, s.width),
        k(context_, random_, type, s.batch, s.kv_heads, s.keys, s.width),
        v(context_, random_, type, s.batch, s.kv_heads, s.keys, s.value_width),
        o(context_, random_, type, s.batch, s.heads, s.queries, s.value_width);
    sg_attention_desc desc = described(s, type);
    desc.q = q.view(), desc.k = k.view(), desc.v = v.view(), desc.o = o.view();
    if (change) change(desc);
    const std::vector<unsigned char> before = o.bytes();
    ASSERT_OK(sg_attention(context_, &desc, nullptr));
    o.fetch();
    const long_double scale = desc.scale != 0 ? desc.scale : 1 / std::sqrt(static_cast<long_double>(s.width));
    const long_double u = unit_of(type), accumulator = unit_of(type == SG_DTYPE_F64 ? SG_DTYPE_F64 : SG_DTYPE_F32);
    std::vector<long_double> weights(std::size_t(s.keys));
    std::vector<unsigned char> gaps = o.bytes();
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h) {
        const std::int64_t of = h / (s.heads / s.kv_heads);
        const std::vector<long_double> of_q = values_of(q, b, h, s.queries, s.width),
                                       of_k = values_of(k, b, of, s.keys, s.width),
                                       of_v = values_of(v, b, of, s.keys, s.value_width);
        for (std::int64_t t = 0; t < s.queries; ++t) {
          const std::int64_t visible =
              desc.mask == SG_MASK_CAUSAL ? std::clamp<std::int64_t>(t + desc.mask_offset + 1, 0, s.keys) : s.keys;
          long_double size = 0;
          for (std::int64_t j = 0; j < visible; ++j) {
            long_double product = 0, magnitude = 0;
            for (std::int64_t d = 0; d < s.width; ++d) {
              const long_double one = of_q[std::size_t(t * s.width + d)] * of_k[std::size_t(j * s.width + d)];
              product += one;
              magnitude += std::abs(one);
            }
            weights[std::size_t(j)] = s.width ? scale * product : 0;
            size = std::max(size, s.width ? std::abs(scale) * magnitude : 0);
          }
          sg_reference::softmax(weights.data(), s.keys, visible);
          for (std::int64_t d = 0; d < s.value_width; ++d) {
            long_double wanted = 0, magnitude = 0;
            for (std::int64_t j = 0; j < visible; ++j) {
              const long_double one = weights[std::size_t(j)] * of_v[std::size_t(j * s.value_width + d)];
              wanted += one;
              magnitude += std::abs(one);
            }
            // Of the weights' rounding, the scores, the sums, and the result's rounding.
            const long_double error = magnitude * (u + accumulator * (2 * size * static_cast<long_double>(s.width + 4) +
                                                                      40 + 2 * static_cast<long_double>(s.keys))) +
                                      u * std::abs(wanted) + 1e-6L * u + (type == SG_DTYPE_F16 ? 1e-6L : 0);
            ASSERT_LE(std::abs(o.at(b, h, t, d) - wanted), error * 1.05L)
                << b << " " << h << " " << t << " " << d << ": " << o.at(b, h, t, d) << " not " << wanted;
            const std::size_t at = o.offset(b, h, t, d);
            std::copy_n(before.begin() + std::ptrdiff_t(at), o.size(), gaps.begin() + std::ptrdiff_t(at));
          }
        }
      }
    EXPECT_EQ(before, gaps) << "a gap was written";
  }

  random_source random_{9};
  static constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
};

TEST_P(attention, every_type_shape_and_layout) {
  const auto size = [&](int most) {
    return std::int64_t(random_.below(5) == 0 ? random_.below(2) : 1 + random_.below(most));
  };
  for (int turn = 0; turn < 240; ++turn) {
    shape s;
    s.batch = size(3), s.kv_heads = 1 + random_.below(3), s.heads = s.kv_heads * size(3);
    s.queries = size(20), s.keys = size(30), s.width = size(12), s.value_width = size(12);
    const bool causal = random_.below(2);
    const std::int64_t offset = random_.below(2) ? s.keys - s.queries : random_.below(9) - 4;
    const int room = random_.below(3);
    const double scale = random_.below(2) ? 0.7 : 0;
    SCOPED_TRACE(testing::Message() << turn << ": " << s.batch << " " << s.heads << "/" << s.kv_heads << " "
                                    << s.queries << " x " << s.keys << " of " << s.width << ", " << s.value_width
                                    << " causal " << causal << " " << offset << " room " << room);
    check(s, types[turn % 4], [&](sg_attention_desc &d) {
      if (causal) d.mask = SG_MASK_CAUSAL, d.mask_offset = offset;
      d.scale = scale;
      if (room == 1) d.workspace = 768;  // a few queries at a time
      if (room == 2) d.workspace = 5000;
    });
    if (HasFailure()) return;
  }
}

TEST_P(attention, long_sequences_in_blocks) {
  for (const sg_dtype type : types) {
    check({1, 4, 2, 280, 280, 8, 8}, type, [](sg_attention_desc &d) { d.mask = SG_MASK_CAUSAL; });
    check({2, 2, 2, 100, 233, 8, 12}, type, [](sg_attention_desc &d) { d.workspace = 1 << 17; });
  }
}

// Devices with a kernel for 16 bits take its tiles of 64 queries and keys.
TEST_P(attention, sixteen_bits_of_every_width) {
  for (int turn = 0; turn < 16; ++turn) {
    shape s;
    s.batch = 1 + random_.below(2), s.kv_heads = 1 + random_.below(2), s.heads = s.kv_heads * (1 + random_.below(3));
    s.queries = 16 + random_.below(70), s.keys = 1 + random_.below(140);
    const auto width = [&] {
      return std::int64_t(random_.below(3) ? 8 * (1 + random_.below(16)) : 1 + random_.below(129));
    };
    s.width = width(), s.value_width = width();
    const bool causal = random_.below(2);
    const std::int64_t offset = random_.below(3) ? s.keys - s.queries : random_.below(200) - 100;
    SCOPED_TRACE(testing::Message() << turn << ": " << s.batch << " " << s.heads << "/" << s.kv_heads << " "
                                    << s.queries << " x " << s.keys << " of " << s.width << ", " << s.value_width
                                    << " causal " << causal << " " << offset);
    check(s, turn % 2 ? SG_DTYPE_F16 : SG_DTYPE_BF16, [&](sg_attention_desc &d) {
      if (causal) d.mask = SG_MASK_CAUSAL, d.mask_offset = offset;
    });
    if (HasFailure()) return;
  }
}

TEST_P(attention, one_query_of_many_heads_with_cached_keys) {
  for (const sg_dtype type : types)
    check({2, 8, 2, 1, 100, 32, 32}, type, [](sg_attention_desc &d) { d.mask = SG_MASK_CAUSAL, d.mask_offset = 99; });
}

// A query's keys behind the mask may be anything.
TEST_P(attention, masked_keys_have_no_effect) {
  heads_in_memory q(context_, random_, SG_DTYPE_F64, 1, 1, 3, 4), k(context_, random_, SG_DTYPE_F64, 1, 1, 3, 4),
      v(context_, random_, SG_DTYPE_F64, 1, 1, 3, 2), o(context_, random_, SG_DTYPE_F64, 1, 1, 3, 2);
  k.set(0, 0, 1, 2, NAN);
  k.set(0, 0, 2, 0, INFINITY);
  k.write();
  sg_attention_desc desc = described({1, 1, 1, 3, 3, 4, 2}, SG_DTYPE_F64);
  desc.q = q.view(), desc.k = k.view(), desc.v = v.view(), desc.o = o.view(), desc.mask = SG_MASK_CAUSAL;
  ASSERT_OK(sg_attention(context_, &desc, nullptr));
  o.fetch();
  EXPECT_EQ(v.at(0, 0, 0, 1), o.at(0, 0, 0, 1));
  EXPECT_TRUE(std::isnan(o.at(0, 0, 1, 1)));
  desc.mask_offset = -2;
  ASSERT_OK(sg_attention(context_, &desc, nullptr));
  o.fetch();
  EXPECT_EQ(0, o.at(0, 0, 0, 0));
  EXPECT_EQ(0, o.at(0, 0, 1, 0));
  EXPECT_EQ(v.at(0, 0, 0, 0), o.at(0, 0, 2, 0));
}

// A cache that grows: each update of the graph shows one key more, and nothing else may change.
TEST_P(attention, an_update_of_a_graph_changes_the_offset) {
  for (const sg_dtype type : types) {
    const shape s{1, 2, 2, 1, 40, 16, 16};
    heads_in_memory q(context_, random_, type, 1, 2, 1, 16), k(context_, random_, type, 1, 2, 40, 16),
        v(context_, random_, type, 1, 2, 40, 16), o(context_, random_, type, 1, 2, 1, 16),
        wanted(context_, random_, type, 1, 2, 1, 16);
    sg_attention_desc desc = described(s, type);
    desc.q = q.view(), desc.k = k.view(), desc.v = v.view(), desc.o = o.view(), desc.mask = SG_MASK_CAUSAL;
    sg_graph *graph = nullptr;
    ASSERT_OK(sg_graph_create(context_, &graph));
    sg_submit record = SG_SUBMIT_INIT;
    record.graph = graph;
    ASSERT_OK(sg_attention_async(context_, &desc, &record, nullptr));
    sg_operation_desc update = SG_OPERATION_DESC_INIT;
    update.operation = SG_OPERATION_ATTENTION;
    for (const std::int64_t offset : {0, 1, 2, 23, 39, 5}) {
      desc.mask_offset = offset, desc.o = o.view(), update.desc = &desc;
      ASSERT_OK(sg_graph_update(graph, 0, &update));
      job done;
      ASSERT_OK(sg_graph_run_async(graph, nullptr, done.out()));
      ASSERT_OK(sg_job_wait(done, SG_FOREVER, nullptr));
      desc.o = wanted.view();
      ASSERT_OK(sg_attention(context_, &desc, nullptr));
      o.fetch(), wanted.fetch();
      for (std::int64_t head = 0; head < 2; ++head)
        for (std::int64_t i = 0; i < 16; ++i) EXPECT_EQ(wanted.at(0, head, 0, i), o.at(0, head, 0, i)) << offset;
    }
    desc.mask = SG_MASK_NONE, desc.mask_offset = 0, desc.o = o.view();
    EXPECT_EQ(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update)) << "another mask";
    EXPECT_OK(sg_graph_release(graph));
  }
}

// One head of one query whose only key has the weight 1: O = V.
class small_attention : public attention {
 protected:
  void SetUp() override {
    attention::SetUp();
    for (int i = 0; i < 4; ++i) {
      EXPECT_OK(sg_buffer_create(context_, 4 * sizeof(double), nullptr, memory_[i].out()));
      void *data = nullptr;
      EXPECT_OK(sg_buffer_data(memory_[i], &data));
      data_[i] = static_cast<double *>(data);
      put(i, {double(i + 1), 2, 3, 4});
    }
  }
  void put(int which, const std::vector<double> &values) {
    EXPECT_OK(sg_copy(context_, data_[which], values.data(), values.size() * sizeof(double), nullptr));
  }
  std::vector<double> get(int which) {
    std::vector<double> values(4);
    EXPECT_OK(sg_copy(context_, values.data(), data_[which], sizeof(double) * 4, nullptr));
    return values;
  }
  sg_attention_desc one_key() {
    sg_attention_desc desc = described({1, 1, 1, 1, 1, 4, 4}, SG_DTYPE_F64);
    desc.q.data = data_[0], desc.k.data = data_[1], desc.v.data = data_[2], desc.o.data = data_[3];
    for (sg_heads *each : {&desc.q, &desc.k, &desc.v, &desc.o})
      each->batch_stride = each->head_stride = each->token_stride = 4;
    return desc;
  }

  buffer memory_[4];
  double *data_[4] = {};
};

TEST_P(small_attention, is_ordered_by_its_operands_and_cancelled) {
  const sg_attention_desc desc = one_key();
  const std::vector<double> fresh = {7, 8, 9, 10};
  ASSERT_OK(sg_copy_async(context_, data_[2], fresh.data(), sizeof(double) * 4, nullptr, nullptr));
  ASSERT_OK(sg_attention_async(context_, &desc, nullptr, nullptr));
  EXPECT_EQ(fresh, get(3));
  gated_job gated(context_);
  SKIP_WITHOUT_GATE(gated);
  sg_job *const first = gated.get();
  sg_submit behind = SG_SUBMIT_INIT;
  behind.after = &first, behind.after_count = 1;
  put(2, {1, 1, 1, 1});
  job handle;
  ASSERT_OK(sg_attention_async(context_, &desc, &behind, handle.out()));
  ASSERT_OK(sg_job_cancel(handle));
  gated.open();
  EXPECT_STATUS(SG_STATUS_CANCELLED, sg_job_wait(handle, SG_FOREVER, nullptr));
  EXPECT_EQ(fresh, get(3));
}

TEST_P(small_attention, is_recorded_in_a_graph_and_updated) {
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  sg_attention_desc desc = one_key();
  ASSERT_OK(sg_attention_async(context_, &desc, &record, nullptr));
  const auto run = [&] {
    job handle;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  };
  run();
  EXPECT_EQ(get(2), get(3));
  desc.v.data = data_[0];
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_ATTENTION, update.desc = &desc;
  ASSERT_OK(sg_graph_update(graph, 0, &update));
  run();
  EXPECT_EQ(get(0), get(3));
  desc.width = 3;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "operation->desc differs from submission 0"))
      << sg_last_error_message();
  desc.width = 4, desc.mask = SG_MASK_CAUSAL;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(small_attention, statistics_and_the_bounded_workspace) {
  sg_attention_desc desc = described({1, 2, 2, 64, 512, 1, 1}, SG_DTYPE_F64);
  buffer memory[4];
  sg_heads *const all[] = {&desc.q, &desc.k, &desc.v, &desc.o};
  for (int i = 0; i < 4; ++i) {
    const std::int64_t tokens = i == 0 || i == 3 ? 64 : 512;
    ASSERT_OK(sg_buffer_create(context_, std::uint64_t(2 * tokens) * sizeof(double), nullptr, memory[i].out()));
    ASSERT_OK(sg_buffer_data(memory[i], &all[i]->data));
    const std::vector<double> zeros(std::size_t(2 * tokens));
    ASSERT_OK(sg_copy(context_, all[i]->data, zeros.data(), zeros.size() * sizeof(double), nullptr));
    all[i]->token_stride = 1, all[i]->head_stride = tokens, all[i]->batch_stride = 2 * tokens;
  }
  const auto run = [&](std::uint64_t workspace) {
    desc.workspace = workspace;
    job handle;
    EXPECT_OK(sg_attention_async(context_, &desc, nullptr, handle.out()));
    EXPECT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    sg_job_statistics found = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(handle, &found));
    return found;
  };
  const sg_job_statistics narrow = run(8 * 512 * sizeof(double)), wide = run(0);
  EXPECT_EQ(2 * 2.0 * 2 * 64 * 512, wide.flops);
  EXPECT_EQ(wide.flops, narrow.flops);
  EXPECT_LT(wide.commands_run, narrow.commands_run);
  EXPECT_EQ(0, std::strncmp("attention", wide.strategy, 9));
  EXPECT_LT(0, wide.bound_seconds);
  desc.workspace = 512;
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_attention(context_, &desc, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "need 4096 bytes of workspace; the limit is 512"))
      << sg_last_error_message();
}

// The scores of a query need 1024 bytes here. The plan uses as much of the context's memory as there is.
TEST_P(attention, a_memory_limit_of_the_context_makes_smaller_blocks) {
  sg_context_options limited = SG_CONTEXT_OPTIONS_INIT;
  limited.device = GetParam();
  limited.memory_limit = 512 << 10;
  const context everything = std::move(context_);
  ASSERT_OK(sg_context_create(&limited, context_.out()));
  const shape s{2, 2, 2, 24, 100, 8, 8};
  for (const std::uint64_t workspace : {std::uint64_t{0}, std::uint64_t{1} << 30, std::uint64_t{8} << 10})
    check(s, SG_DTYPE_F64, [&](sg_attention_desc &desc) { desc.workspace = workspace; });
}

TEST_P(attention, without_tokens_any_stride_is_right) {
  for (int missing = 0; missing < 4; ++missing) {
    std::int64_t sizes[] = {2, 2, 3, 4};  // batch, heads, tokens, width
    sizes[missing] = 0;
    const auto [batch, heads, tokens, width] = sizes;
    sg_attention_desc desc =
        described({batch, heads, std::max<std::int64_t>(heads, 1), tokens, tokens, width, width}, SG_DTYPE_F64);
    desc.q = desc.o = desc.k = desc.v = {nullptr, heads * tokens * width, tokens * width, width};
    EXPECT_OK(sg_attention(context_, &desc, nullptr)) << missing;
  }
}

TEST_P(small_attention, wrong_calls_name_the_field) {
  const auto bad = [&](sg_status wanted, const char *part, const std::function<void(sg_attention_desc &)> &spoil) {
    sg_attention_desc desc = one_key();
    spoil(desc);
    EXPECT_STATUS(wanted, sg_attention(context_, &desc, nullptr));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message() << " without " << part;
  };
  using d = sg_attention_desc;
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT;
  bad(invalid, "desc->struct_size", [](d &x) { x.struct_size = 8; });
  bad(invalid, "desc->queries is -1", [](d &x) { x.queries = -1; });
  bad(invalid, "desc->kv_heads is 0", [](d &x) { x.kv_heads = 0; });
  bad(invalid, "desc->heads is 1 and desc->kv_heads is 2", [](d &x) { x.kv_heads = 2; });
  bad(invalid, "desc->mask is 9", [](d &x) { x.mask = sg_mask(9); });
  bad(invalid, "desc->mask_offset is 1", [](d &x) { x.mask_offset = 1; });
  bad(invalid, "desc->scale is", [](d &x) { x.scale = NAN; });
  bad(invalid, "desc->reserved is 1", [](d &x) { x.reserved = 1; });
  bad(invalid, "desc->compute is 1", [](d &x) { x.compute = sg_compute(1); });
  bad(invalid, "desc->workspace is", [](d &x) { x.workspace = UINT64_MAX; });
  bad(invalid, "desc->k.head_stride is -1", [](d &x) { x.k.head_stride = -1; });
  bad(invalid, "desc->v.token_stride is 3; a token has 4", [](d &x) { x.keys = 2, x.v.token_stride = 3; });
  bad(invalid, "tokens of desc->o overlap", [](d &x) { x.heads = 2, x.o.head_stride = 2; });
  bad(invalid, "desc->q.data is NULL", [](d &x) { x.q.data = nullptr; });
  bad(invalid, "desc->v (", [](d &x) { x.o.data = x.v.data; });
  bad(invalid, "which is not aligned", [](d &x) { x.k.data = static_cast<char *>(x.k.data) + 4; });
  bad(SG_STATUS_UNSUPPORTED, "desc->dtype is c64", [](d &x) { x.dtype = SG_DTYPE_C64; });
  EXPECT_EQ((std::vector<double>{4, 2, 3, 4}), get(3));
  const sg_attention_desc desc = one_key();
  EXPECT_STATUS(invalid, sg_attention(context_, nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_attention(reinterpret_cast<sg_context *>(1), &desc, nullptr));
}

// The weights of a query, as rounded, sum to one: results are means of values, so that equal values are their own mean,
// f16's largest one too.
TEST_P(attention, means_of_equal_values_are_the_values) {
  for (const sg_dtype type : {SG_DTYPE_F16, SG_DTYPE_BF16})
    for (const shape &s :
         {shape{1, 1, 1, 1, 1000, 16, 16}, shape{1, 2, 1, 70, 333, 40, 24}, shape{2, 2, 2, 3, 77, 128, 128},
          shape{1, 1, 1, 5, 30, 300, 513}, shape{1, 4, 2, 20, 1000, 4, 80}}) {
      heads_in_memory q(context_, random_, type, s.batch, s.heads, s.queries, s.width),
          k(context_, random_, type, s.batch, s.kv_heads, s.keys, s.width),
          v(context_, random_, type, s.batch, s.kv_heads, s.keys, s.value_width),
          o(context_, random_, type, s.batch, s.heads, s.queries, s.value_width);
      const long double largest = type == SG_DTYPE_F16 ? 65504 : std::ldexp(255.0L, 100);  // their sum is in f32
      const bool has_equal_keys = s.queries == 1;
      for (std::int64_t b = 0; b < s.batch; ++b)
        for (std::int64_t h = 0; h < s.kv_heads; ++h)
          for (std::int64_t t = 0; t < s.keys; ++t) {
            for (std::int64_t d = 0; d < s.value_width; ++d) v.set(b, h, t, d, d % 2 == 0 ? largest : v.at(b, h, 0, d));
            for (std::int64_t d = 0; has_equal_keys && d < s.width; ++d) k.set(b, h, t, d, 1);
          }
      v.write(), k.write();
      sg_attention_desc desc = described(s, type);
      desc.q = q.view(), desc.k = k.view(), desc.v = v.view(), desc.o = o.view();
      ASSERT_OK(sg_attention(context_, &desc, nullptr));
      o.fetch();
      for (std::int64_t b = 0; b < s.batch; ++b)
        for (std::int64_t h = 0; h < s.heads; ++h)
          for (std::int64_t t = 0; t < s.queries; ++t)
            for (std::int64_t d = 0; d < s.value_width; ++d)
              ASSERT_EQ(v.at(b, h / (s.heads / s.kv_heads), 0, d), o.at(b, h, t, d))
                  << sg_dtype_name(type) << ", " << s.keys << " keys, token " << t << ", element " << d;
    }
}

ON_EACH_DEVICE(attention);
ON_EACH_DEVICE(small_attention);

}  // namespace
}  // namespace sg_test
