// SPDX-License-Identifier: Apache-2.0
// The memory of an operation is exactly its elements: a failure poisons nothing between them, and ends when they are
// written again.
#include <cstring>

#include "support/heads_in_memory.hpp"

namespace sg_test {
namespace {

class footprints : public on_each_device {
 protected:
  // Submits by `submit(options)` behind a gate, cancels it, and leaves the failure unobserved.
  template <class Submit>
  void fail(Submit &&submit) {
    gated_job gated(context_);
    ASSERT_TRUE(gated);
    sg_job *const first = gated.get();
    sg_submit options = SG_SUBMIT_INIT;
    options.after = &first, options.after_count = 1;
    job writer;
    ASSERT_OK(submit(&options, writer.out()));
    ASSERT_OK(sg_job_cancel(writer));
    gated.open();
    writer.reset();
    ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  }
  sg_status read(const void *from, std::size_t bytes) {
    std::vector<char> to(bytes);
    return sg_copy(context_, to.data(), from, bytes, nullptr);
  }
};

#define WITH_GATES()                   \
  if (gate *const probe = gate_new(8)) \
    gate_free(probe);                  \
  else                                 \
    GTEST_SKIP() << "userfaultfd is not available here"

TEST_P(footprints, an_attention_writes_its_heads_and_nothing_between_them) {
  WITH_GATES();
  for (int seed = 0; seed < 12; ++seed) {
    random_source random(static_cast<unsigned>(seed));
    const std::int64_t batch = 1 + random.below(3), heads = 1 + random.below(3), tokens = 1 + random.below(3),
                       width = 3;
    heads_in_memory q(context_, random, SG_DTYPE_F64, batch, heads, tokens, width),
        k(context_, random, SG_DTYPE_F64, batch, heads, tokens, width),
        v(context_, random, SG_DTYPE_F64, batch, heads, tokens, width),
        o(context_, random, SG_DTYPE_F64, batch, heads, tokens, width);
    sg_attention_desc desc = SG_ATTENTION_DESC_INIT;
    desc.dtype = SG_DTYPE_F64;
    desc.batch = batch, desc.heads = desc.kv_heads = heads, desc.queries = desc.keys = tokens;
    desc.width = desc.value_width = width;
    desc.q = q.view(), desc.k = k.view(), desc.v = v.view(), desc.o = o.view();
    const auto submit = [&](const sg_submit *options, sg_job **out) {
      return sg_attention_async(context_, &desc, options, out);
    };
    std::vector<bool> written(o.bytes().size() / sizeof(double));
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t t = 0; t < tokens; ++t)
          for (std::int64_t d = 0; d < width; ++d) written[o.offset(b, h, t, d) / sizeof(double)] = true;
    const auto *const first = static_cast<const double *>(o.view().data);
    fail(submit);
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (!written[i]) {
        EXPECT_OK(read(first + i, sizeof *first)) << "a gap, seed " << seed;
      }
    }
    ASSERT_OK(submit(nullptr, nullptr));
    for (std::size_t i = 0; i < written.size(); ++i) EXPECT_OK(read(first + i, sizeof *first)) << "written again";
    fail(submit);
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (!written[i]) continue;
      EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, read(first + i, sizeof *first)) << "seed " << seed;
      break;  // that read has observed the failure
    }
  }
}

TEST_P(footprints, rows_of_another_pitch_end_the_failure_of_those_that_they_cover) {
  WITH_GATES();
  buffer memory, table_memory, index_memory;
  void *data = nullptr, *table = nullptr, *indices = nullptr;
  ASSERT_OK(sg_buffer_create(context_, 40 * 8, nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  ASSERT_OK(sg_buffer_create(context_, 40 * 8, nullptr, table_memory.out()));
  ASSERT_OK(sg_buffer_data(table_memory, &table));
  ASSERT_OK(sg_buffer_create(context_, 64, nullptr, index_memory.out()));
  ASSERT_OK(sg_buffer_data(index_memory, &indices));
  auto *const x = static_cast<double *>(data);
  const std::int32_t zeros[16] = {};
  ASSERT_OK(sg_copy(context_, indices, zeros, sizeof zeros, nullptr));
  const double values[40] = {};
  ASSERT_OK(sg_copy(context_, table, values, sizeof values, nullptr));
  ASSERT_OK(sg_copy(context_, x, values, sizeof values, nullptr));
  sg_softmax_desc softmax = SG_SOFTMAX_DESC_INIT;  // elements 0, 1, 4, 5, 8, 9, 12, 13
  softmax.x = softmax.y = {x, 4, 2, 4, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  const auto fail_softmax = [&] {
    fail([&](const sg_submit *options, sg_job **out) { return sg_softmax_async(context_, &softmax, options, out); });
  };
  const auto gather = [&](double *to, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
    sg_gather_desc desc = SG_GATHER_DESC_INIT;
    desc.table = {table, 1, cols, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
    desc.y = {to, rows, cols, ld, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
    desc.indices = indices, desc.index_type = SG_INDEX_I32;
    return sg_gather(context_, &desc, nullptr);
  };
  fail_softmax();
  ASSERT_OK(gather(x, 2, 6, 8));  // elements 0 to 5 and 8 to 13
  EXPECT_OK(read(x, 14 * sizeof *x));
  fail_softmax();
  ASSERT_OK(gather(x, 2, 5, 8));  // 0 to 4 and 8 to 12: not 5 and 13
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, read(x + 5, sizeof *x));
  fail_softmax();
  sg_gemm_desc parts[2] = {make_gemm(x + 16, x + 17, x, 1, 6, 1), make_gemm(x + 16, x + 17, x + 6, 1, 8, 1)};
  ASSERT_OK(sg_gemm_grouped_async(context_, parts, 2, nullptr, nullptr));  // two that cover it together
  EXPECT_OK(read(x, 14 * sizeof *x));
}

// Channels that an operation does not use are not its memory.
TEST_P(footprints, unused_channels_may_hold_the_matrix) {
  buffer memory;
  void *data = nullptr;
  constexpr std::int64_t pixels = 6, channels = 4;
  ASSERT_OK(sg_buffer_create(context_, pixels * channels * 8, nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  double values[pixels * channels];
  for (std::size_t i = 0; i < std::size(values); ++i) values[i] = double(i);
  ASSERT_OK(sg_copy(context_, data, values, sizeof values, nullptr));
  sg_im2col_desc desc = SG_IM2COL_DESC_INIT;
  desc.x = {data, 0};
  desc.channels = channels, desc.height = 2, desc.width = 3, desc.first_channel = 1, desc.used_channels = 1;
  desc.image_layout = SG_IMAGE_NHWC;
  desc.matrix = {static_cast<double *>(data) + 2, pixels, 1, channels, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  ASSERT_OK(sg_im2col(context_, &desc, nullptr)) << "channel 1 to channel 2";
  ASSERT_OK(sg_copy(context_, values, data, sizeof values, nullptr));
  for (std::int64_t i = 0; i < pixels; ++i) {
    EXPECT_EQ(double(i * channels + 1), values[i * channels + 2]);
    EXPECT_EQ(double(i * channels + 3), values[i * channels + 3]);
  }
  desc.matrix.data = static_cast<double *>(data) + 1;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_im2col(context_, &desc, nullptr));
}

ON_EACH_DEVICE(footprints);

}  // namespace
}  // namespace sg_test
