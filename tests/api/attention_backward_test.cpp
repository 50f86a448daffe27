// SPDX-License-Identifier: Apache-2.0
// Gradients of attention: every type, layout and mask against central differences, packed results, graphs, refused
// calls.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <sstream>
#include <utility>

#include "../reference/attention.hpp"
#include "../reference/differences.hpp"
#include "support/heads_in_memory.hpp"

namespace sg_test {
namespace {

using sg_reference::attention_shape;
using sg_reference::attention_values;
using vector = std::vector<long double>;

vector values_of(heads_in_memory &x, std::int64_t batch, std::int64_t heads, std::int64_t tokens, std::int64_t width) {
  vector values;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t d = 0; d < width; ++d) values.push_back(x.at(b, h, t, d));
  return values;
}

long double tolerance(sg_dtype type) {
  switch (type) {
    case SG_DTYPE_F64: return 1e-8L;
    case SG_DTYPE_F32: return 2e-5L;
    case SG_DTYPE_F16: return 1e-2L;
    default: return 8e-2L;
  }
}

class attention_backward : public on_each_device {
 protected:
  void check(const attention_shape &s, sg_dtype type, double scale, std::uint64_t workspace, int wanted,
             std::int64_t granule = 1) {
    const auto of_queries = [&](std::int64_t width) {
      return std::make_unique<heads_in_memory>(context_, random_, type, s.batch, s.heads, s.queries, width, granule);
    };
    const auto of_keys = [&](std::int64_t width) {
      return std::make_unique<heads_in_memory>(context_, random_, type, s.batch, s.kv_heads, s.keys, width, granule);
    };
    const auto q = of_queries(s.width), dout = of_queries(s.value_width), dq = of_queries(s.width);
    const auto k = of_keys(s.width), v = of_keys(s.value_width), dk = of_keys(s.width), dv = of_keys(s.value_width);
    sg_attention_backward_desc desc = SG_ATTENTION_BACKWARD_DESC_INIT;
    desc.q = q->view(), desc.k = k->view(), desc.v = v->view(), desc.dout = dout->view();
    if (wanted & 1) desc.dq = dq->view();
    if (wanted & 2) desc.dk = dk->view();
    if (wanted & 4) desc.dv = dv->view();
    desc.dtype = type, desc.scale = scale, desc.workspace = workspace;
    desc.mask = s.causal ? SG_MASK_CAUSAL : SG_MASK_NONE, desc.mask_offset = s.mask_offset;
    desc.batch = s.batch, desc.heads = s.heads, desc.kv_heads = s.kv_heads, desc.queries = s.queries,
    desc.keys = s.keys;
    desc.width = s.width, desc.value_width = s.value_width;
    ASSERT_OK(sg_attention_backward(context_, &desc, nullptr));
    attention_values values{values_of(*q, s.batch, s.heads, s.queries, s.width),
                            values_of(*k, s.batch, s.kv_heads, s.keys, s.width),
                            values_of(*v, s.batch, s.kv_heads, s.keys, s.value_width)};
    const vector of_o = values_of(*dout, s.batch, s.heads, s.queries, s.value_width);
    const long double factor = scale != 0 ? scale : 1 / std::sqrt(std::max<long double>(1, s.width));
    const auto loss = [&] { return sg_reference::loss_of(s, values, of_o, factor); };
    const auto compare = [&](const char *name, vector &of, heads_in_memory &found, bool is_wanted, std::int64_t heads,
                             std::int64_t tokens, std::int64_t width) {
      const std::vector<unsigned char> before = found.bytes();
      found.fetch();
      if (!is_wanted) {
        EXPECT_EQ(before, found.bytes()) << name << " was written";
        return;
      }
      const vector expected = sg_reference::difference_gradient(of, loss),
                   computed = values_of(found, s.batch, heads, tokens, width);
      long double most = 1;
      for (const long double each : expected) most = std::max(most, std::abs(each));
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_LE(std::abs(expected[i] - computed[i]), most * tolerance(type))
            << name << " " << i << ": " << computed[i] << " not " << expected[i];
      std::vector<unsigned char> gaps = found.bytes();
      for (std::int64_t b = 0; b < s.batch; ++b)
        for (std::int64_t h = 0; h < heads; ++h)
          for (std::int64_t t = 0; t < tokens; ++t)
            for (std::int64_t d = 0; d < width; ++d) {
              const auto at = static_cast<std::ptrdiff_t>(found.offset(b, h, t, d));
              std::copy_n(before.begin() + at, found.size(), gaps.begin() + at);
            }
      EXPECT_EQ(before, gaps) << "a gap of " << name << " was written";
    };
    compare("dq", values.q, *dq, wanted & 1, s.heads, s.queries, s.width);
    compare("dk", values.k, *dk, wanted & 2, s.kv_heads, s.keys, s.width);
    compare("dv", values.v, *dv, wanted & 4, s.kv_heads, s.keys, s.value_width);
  }

  random_source random_{12};
  static constexpr sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
};

TEST_P(attention_backward, gradients_are_central_differences) {
  const auto size = [&](int most) {
    return std::int64_t(random_.below(6) == 0 ? random_.below(2) : 1 + random_.below(most));
  };
  for (int turn = 0; turn < 160; ++turn) {
    attention_shape s{};
    s.batch = size(3), s.kv_heads = 1 + random_.below(3), s.heads = s.kv_heads * size(3);
    s.queries = size(6), s.keys = size(7), s.width = size(5), s.value_width = size(5);
    s.causal = random_.below(2);
    if (s.causal) s.mask_offset = random_.below(2) ? s.keys - s.queries : random_.below(9) - 5;
    const std::uint64_t workspace = random_.below(2) ? 0 : std::uint64_t(512 + random_.below(3000));
    const int wanted = random_.below(2) ? 7 : random_.below(8);
    std::ostringstream text;
    text << turn << ": " << s.batch << " " << s.heads << "/" << s.kv_heads << " " << s.queries << " x " << s.keys
         << " of " << s.width << ", " << s.value_width << " causal " << s.causal << " " << s.mask_offset
         << " workspace " << workspace << " wanted " << wanted;
    SCOPED_TRACE(text.str());
    check(s, types[turn % 4], random_.below(2) ? 0.7 : 0, workspace, wanted);
    if (HasFailure()) return;
  }
}

// As a device's fused kernels take them.
TEST_P(attention_backward, sixteen_bits_in_whole_vectors) {
  constexpr std::int64_t vector_elements = 8;
  for (int turn = 0; turn < 12; ++turn) {
    attention_shape s{};
    s.batch = 1 + random_.below(2), s.kv_heads = 1 + random_.below(2), s.heads = s.kv_heads * (1 + random_.below(2));
    s.queries = 1 + random_.below(4), s.keys = 1 + random_.below(5);
    s.width = vector_elements * (1 + random_.below(2)), s.value_width = vector_elements;
    s.causal = random_.below(3) > 0;
    if (s.causal) s.mask_offset = random_.below(2) ? s.keys - s.queries : 0;
    const int wanted = random_.below(2) ? 7 : 1 + random_.below(7);
    SCOPED_TRACE(testing::Message() << turn << ": " << s.batch << " " << s.heads << "/" << s.kv_heads << " "
                                    << s.queries << " x " << s.keys << " of " << s.width << " causal " << s.causal
                                    << " " << s.mask_offset << " wanted " << wanted);
    check(s, types[2 + turn % 2], random_.below(2) ? 0.7 : 0, 0, wanted, vector_elements);
    if (HasFailure()) return;
  }
}

TEST_P(attention_backward, heads_in_blocks_of_queries) {
  for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_BF16})
    for (const bool causal : {false, true}) check({1, 4, 2, 40, 24, 3, 4, causal, causal ? -8 : 0}, type, 0, 4096, 7);
}

// A device may have another way for scales below 0.
TEST_P(attention_backward, an_update_may_change_the_scale_s_sign_and_the_offset) {
  constexpr std::int64_t tokens = 5, width = 8;
  const auto made = [&] {
    return std::make_unique<heads_in_memory>(context_, random_, SG_DTYPE_BF16, 1, 2, tokens, width, width);
  };
  const auto q = made(), k = made(), v = made(), dout = made(), dq = made(), again = made();
  sg_attention_backward_desc desc = SG_ATTENTION_BACKWARD_DESC_INIT;
  desc.q = q->view(), desc.k = k->view(), desc.v = v->view(), desc.dout = dout->view(), desc.dq = dq->view();
  desc.dtype = SG_DTYPE_BF16, desc.heads = desc.kv_heads = 2, desc.queries = desc.keys = tokens;
  desc.width = desc.value_width = width, desc.scale = 0.5, desc.mask = SG_MASK_CAUSAL;
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  ASSERT_OK(sg_attention_backward_async(context_, &desc, &record, nullptr));
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_ATTENTION_BACKWARD, update.desc = &desc;
  for (const auto &[scale, offset] : {std::pair{-0.5, 0}, {0.25, 2}, {-0.125, -1}, {0.5, 4}}) {
    desc.scale = scale, desc.mask_offset = offset, desc.dq = dq->view();
    ASSERT_OK(sg_graph_update(graph, 0, &update)) << scale;
    job handle;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    desc.dq = again->view();
    ASSERT_OK(sg_attention_backward(context_, &desc, nullptr));
    dq->fetch(), again->fetch();
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t e = 0; e < width; ++e)
          ASSERT_NEAR(double(again->at(0, h, t, e)), double(dq->at(0, h, t, e)), 0.02) << scale;
  }
  EXPECT_OK(sg_graph_release(graph));
}

// dQ, dK and dV of each token in one row, as the gradient of a linear layer that made Q, K and V.
TEST_P(attention_backward, packed_operands_and_results_are_ordered_and_recorded) {
  constexpr std::int64_t tokens = 6, heads = 2, width = 4, row = 3 * heads * width;
  buffer memory[3];
  double *data[3] = {};
  std::vector<double> values(std::size_t(tokens * row));
  for (int i = 0; i < 3; ++i) {
    void *at = nullptr;
    ASSERT_OK(sg_buffer_create(context_, values.size() * sizeof(double), nullptr, memory[i].out()));
    ASSERT_OK(sg_buffer_data(memory[i], &at));
    data[i] = static_cast<double *>(at);
    for (double &each : values) each = random_.real();
    ASSERT_OK(sg_copy(context_, at, values.data(), values.size() * sizeof(double), nullptr));
  }
  sg_attention_backward_desc desc = SG_ATTENTION_BACKWARD_DESC_INIT;
  const auto part = [&](double *of, int which) { return sg_heads{of + which * heads * width, 0, width, row}; };
  desc.q = part(data[0], 0), desc.k = part(data[0], 1), desc.v = part(data[0], 2), desc.dout = part(data[1], 0);
  desc.dq = part(data[2], 0), desc.dk = part(data[2], 1), desc.dv = part(data[2], 2);
  desc.dtype = SG_DTYPE_F64, desc.heads = desc.kv_heads = heads, desc.queries = desc.keys = tokens;
  desc.width = desc.value_width = width, desc.mask = SG_MASK_CAUSAL;
  ASSERT_OK(sg_attention_backward(context_, &desc, nullptr));
  std::vector<double> found(values.size()), again(values.size(), 0.0);
  const auto fetch = [&](std::vector<double> &to) {
    EXPECT_OK(sg_copy(context_, to.data(), data[2], to.size() * sizeof(double), nullptr));
  };
  fetch(found);
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  ASSERT_OK(sg_attention_backward_async(context_, &desc, &record, nullptr));
  ASSERT_OK(sg_copy(context_, data[2], again.data(), again.size() * sizeof(double), nullptr));
  const auto run = [&] {
    job handle;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  };
  run();
  fetch(again);
  EXPECT_EQ(found, again);
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_ATTENTION_BACKWARD, update.desc = &desc;
  desc.scale = 0.25;
  ASSERT_OK(sg_graph_update(graph, 0, &update));
  run();
  fetch(again);
  EXPECT_NE(found, again);
  desc.dq.data = nullptr;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  EXPECT_OK(sg_graph_release(graph));

  const auto bad = [&](sg_status wanted, const char *text,
                       const std::function<void(sg_attention_backward_desc &)> &spoil) {
    sg_attention_backward_desc wrong = desc;
    spoil(wrong);
    EXPECT_STATUS(wanted, sg_attention_backward(context_, &wrong, nullptr));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message() << " without " << text;
  };
  using d = sg_attention_backward_desc;
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT;
  bad(invalid, "desc->struct_size", [](d &x) { x.struct_size = 8; });
  bad(invalid, "desc->heads is 3 and desc->kv_heads is 2", [](d &x) { x.heads = 3; });
  bad(invalid, "desc->dk.head_stride is -1", [](d &x) { x.dk.head_stride = -1; });
  bad(invalid, "tokens of desc->dv overlap", [](d &x) { x.dv.head_stride = 2; });
  bad(invalid, "desc->dout.data is NULL", [](d &x) { x.dout.data = nullptr; });
  bad(invalid, "desc->dk (", [&](d &x) { x.dv = part(data[2], 1); });
  bad(invalid, "desc->q (", [&](d &x) { x.dk = part(data[0], 0); });
  bad(invalid, "desc->reserved is 1", [](d &x) { x.reserved = 1; });
  bad(SG_STATUS_UNSUPPORTED, "desc->dtype is i32", [](d &x) { x.dtype = SG_DTYPE_I32; });
  bad(SG_STATUS_OUT_OF_MEMORY, "bytes of workspace; the limit is 9", [](d &x) { x.workspace = 9; });
  desc.dk.data = desc.dv.data = nullptr;
  EXPECT_OK(sg_attention_backward(context_, &desc, nullptr));
}

ON_EACH_DEVICE(attention_backward);

}  // namespace
}  // namespace sg_test
