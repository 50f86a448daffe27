// SPDX-License-Identifier: Apache-2.0
// GEMMs under every way of running them: forced splits, tiles, memory limits, memory spaces of the operands, batches.
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "support/gemm_case.hpp"
#include "support/harness.hpp"

namespace sg_test {
namespace {

class gemm_plans : public on_each_device {};

TEST_P(gemm_plans, every_memory_space_of_every_operand) {
  for (const sg_memory_kind a : memory_kinds)
    for (const sg_memory_kind b : memory_kinds)
      for (const sg_memory_kind c : memory_kinds)
        for (const int layout : {0, 1})
          for (const double beta : {0.0, 2.0}) {
            gemm_case g;
            g.m = 33;
            g.n = 20;
            g.k = 17;
            g.pad = 2;
            g.place_a = a;
            g.place_b = b;
            g.place_c = c;
            g.layout_a = g.layout_c = static_cast<sg_layout>(layout);
            g.op_b = SG_TRANSPOSE_T;
            g.beta = {beta, 0};
            ASSERT_EQ("", run_gemm_case(context_, g)) << g.text();
          }
}

// Items of one column or one row whose views have a little padding, like slices of padded matrices.
TEST_P(gemm_plans, batches_of_thin_items) {
  for (const sg_memory_kind place : memory_kinds)
    for (const sg_layout layout : {SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR})
      for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
        for (const std::int64_t pad : {0, 7})
          for (const std::int64_t gap : {0, 5, 5000}) {
            constexpr std::int64_t batch = 3, k = 65;
            const bool across = (layout == SG_LAYOUT_ROW_MAJOR) == (op == SG_TRANSPOSE_N);  // A is stored as one run
            const std::int64_t ld = (across ? k : 1) + pad, stride = (across ? k : (k - 1) * ld + 1) + gap;
            const std::int64_t count = (batch - 1) * stride + (across ? k : (k - 1) * ld + 1);
            std::vector<float> ones(k, 1), sums(batch, -1);
            sg_matrix a{nullptr, op == SG_TRANSPOSE_N ? 1 : k, op == SG_TRANSPOSE_N ? k : 1, ld, SG_DTYPE_F32, layout};
            std::vector<float> values(static_cast<std::size_t>(count), std::nanf(""));
            for (std::int64_t item = 0; item < batch; ++item)
              for (std::int64_t p = 0; p < k; ++p)
                values[static_cast<std::size_t>(item * stride + p * (across ? 1 : ld))] = static_cast<float>(item + 1);
            const std::uint64_t bytes = values.size() * sizeof(float);
            void *pinned = nullptr, *data = values.data();
            buffer on_device;
            if (place == SG_MEMORY_PINNED) {
              ASSERT_OK(sg_host_alloc(context_, bytes, &pinned));
              data = std::memcpy(pinned, values.data(), bytes);
            } else if (place == SG_MEMORY_DEVICE) {
              ASSERT_OK(sg_buffer_create(context_, bytes, nullptr, on_device.out()));
              ASSERT_OK(sg_buffer_data(on_device, &data));
              ASSERT_OK(sg_copy_async(context_, data, values.data(), bytes, nullptr, nullptr));
            }
            a.data = data;
            sg_gemm_desc d = SG_GEMM_DESC_INIT;
            d.a = a;
            d.op_a = op;
            d.b = {ones.data(), k, 1, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
            d.c = {sums.data(), 1, 1, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
            d.batch = batch, d.stride_a = stride, d.stride_c = 1;
            ASSERT_OK(sg_gemm(context_, &d, nullptr));
            for (std::int64_t item = 0; item < batch; ++item)
              ASSERT_EQ(static_cast<float>(k * (item + 1)), sums[static_cast<std::size_t>(item)])
                  << "item " << item << " place " << place << " layout " << layout << " op " << op << " pad " << pad
                  << " gap " << gap;
            ASSERT_OK(sg_host_free(context_, pinned));  // NULL is allowed
          }
}

// Items of 16-bit elements at odd multiples of 2 bytes, through pointers, like slices of packed sequences.
TEST_P(gemm_plans, short_items_at_any_address) {
  constexpr std::int64_t batch = 6, m = 2, n = 2, k = 3, step = 7;
  for (const sg_dtype type : {SG_DTYPE_F16, SG_DTYPE_BF16}) {
    const std::uint16_t one = type == SG_DTYPE_F16 ? 0x3c00 : 0x3f80, three = type == SG_DTYPE_F16 ? 0x4200 : 0x4040;
    const std::vector<std::uint16_t> ones(batch * step, one);
    const std::uint64_t bytes = ones.size() * sizeof(std::uint16_t);
    buffer operands[3];
    void *memory[3], *items[3][batch];
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(sg_buffer_create(context_, bytes, nullptr, operands[i].out()));
      ASSERT_OK(sg_buffer_data(operands[i], &memory[i]));
      ASSERT_OK(sg_copy(context_, memory[i], ones.data(), bytes, nullptr));
      for (std::int64_t item = 0; item < batch;
           ++item)  // the last one first, so that no stride describes the addresses
        items[i][item] = static_cast<std::uint16_t *>(memory[i]) + (batch - 1 - item) * step + 1;
    }
    sg_gemm_desc d = SG_GEMM_DESC_INIT;
    d.a = {nullptr, m, k, k, type, SG_LAYOUT_ROW_MAJOR};
    d.b = {nullptr, k, n, n, type, SG_LAYOUT_ROW_MAJOR};
    d.c = {nullptr, m, n, n, type, SG_LAYOUT_ROW_MAJOR};
    d.batch = batch;
    d.a_array = items[0], d.b_array = items[1], d.c_array = items[2];
    ASSERT_OK(sg_gemm(context_, &d, nullptr));
    std::vector<std::uint16_t> seen(ones.size());
    ASSERT_OK(sg_copy(context_, seen.data(), memory[2], bytes, nullptr));
    for (std::int64_t i = 0; i < batch * step; ++i)
      ASSERT_EQ(i % step >= 1 && i % step <= m * n ? three : one, seen[static_cast<std::size_t>(i)])
          << i << ' ' << sg_dtype_name(type);
  }
}

TEST_P(gemm_plans, forced_splits) {
  for (const sg_split split : {SG_SPLIT_NONE, SG_SPLIT_M, SG_SPLIT_N, SG_SPLIT_K})
    for (const std::int32_t parts : {0, 2, 3, 7})
      for (const sg_dtype type :
           {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_C64, SG_DTYPE_BF16, SG_DTYPE_I8, SG_DTYPE_F8_E4M3})
        for (const double beta : {0.0, -1.0})
          for (const sg_memory_kind place : {SG_MEMORY_DEVICE, SG_MEMORY_PAGEABLE}) {
            if (split == SG_SPLIT_NONE && parts > 1) continue;
            gemm_case g;
            g.in = type;
            g.out = natural_result(type);
            g.m = 45;
            g.n = 52;
            g.k = 61;
            g.pad = 3;
            g.beta = {beta, 0};
            g.op_a = SG_TRANSPOSE_T;
            g.place_a = g.place_b = g.place_c = place;
            g.options.split = split;
            g.options.parts = parts;
            ASSERT_EQ("", run_gemm_case(context_, g)) << g.text();
          }
}

// A split only changes which command adds which terms: sums of integers cannot tell the difference.
TEST_P(gemm_plans, integers_are_exact_under_every_split) {
  for (const sg_split split : {SG_SPLIT_AUTO, SG_SPLIT_NONE, SG_SPLIT_M, SG_SPLIT_N, SG_SPLIT_K})
    for (const sg_dtype type : {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_C64, SG_DTYPE_C128, SG_DTYPE_F16, SG_DTYPE_BF16}) {
      gemm_case g;
      g.integers = true;
      g.in = g.out = type;
      g.m = 40;
      g.n = 30;
      g.k = 100;
      g.beta = {1, 0};
      g.options.split = split;
      g.options.parts = split >= SG_SPLIT_M ? 4 : 0;
      ASSERT_EQ("", run_gemm_case(context_, g)) << g.text();
    }
}

TEST_P(gemm_plans, forced_tiles) {
  constexpr std::int64_t tiles[][3] = {{8, 8, 8},    {16, 5, 100}, {1, 50, 7},  {50, 1, 1},
                                       {13, 17, 19}, {0, 9, 0},    {1000, 0, 3}};
  for (const auto &tile : tiles)
    for (const sg_memory_kind place : {SG_MEMORY_PAGEABLE, SG_MEMORY_PINNED})
      for (const int layout : {0, 1})
        for (const double beta : {0.0, 3.0}) {
          gemm_case g;
          g.m = 37;
          g.n = 41;
          g.k = 29;
          g.pad = 1;
          g.place_a = g.place_b = g.place_c = place;
          g.layout_b = static_cast<sg_layout>(layout);
          g.beta = {beta, 0};
          g.options.tile_m = tile[0];
          g.options.tile_n = tile[1];
          g.options.tile_k = tile[2];
          ASSERT_EQ("", run_gemm_case(context_, g)) << g.text();
        }
}

TEST_P(gemm_plans, streams_from_one_to_many) {
  for (const std::int32_t streams : {1, 2, 3, 16})
    for (const sg_split split : {SG_SPLIT_AUTO, SG_SPLIT_N}) {
      gemm_case g;
      g.m = g.n = g.k = 70;
      g.options.streams = streams;
      g.options.split = split;
      ASSERT_EQ("", run_gemm_case(context_, g)) << g.text();
    }
}

TEST_P(gemm_plans, batches) {
  for (const batch_form form : {batch_form::strided, batch_form::shared_a, batch_form::pointers})
    for (const std::int64_t batch : {1, 2, 5, 33})
      for (const sg_memory_kind place : memory_kinds)
        for (const sg_split split : {SG_SPLIT_AUTO, SG_SPLIT_NONE, SG_SPLIT_BATCH})
          for (const sg_dtype type : {SG_DTYPE_F32, SG_DTYPE_C128, SG_DTYPE_F16}) {
            if (split == SG_SPLIT_BATCH && batch < 2) continue;
            gemm_case g;
            g.in = g.out = type;
            g.m = 9;
            g.n = 8;
            g.k = 11;
            g.pad = 2;
            g.form = form;
            g.batch = batch;
            g.beta = {1, 0};
            g.layout_c = SG_LAYOUT_COLUMN_MAJOR;
            g.place_a = g.place_b = g.place_c = place;
            g.options.split = split;
            g.options.parts = split == SG_SPLIT_BATCH ? 2 : 0;
            ASSERT_EQ("", run_gemm_case(context_, g)) << g.text();
          }
}

ON_EACH_DEVICE(gemm_plans);

// Operands larger than the memory that the job may use: they are streamed in chunks.
TEST(gemm_memory_limits, less_memory_than_any_operand) {
  const context context = open_context("sim:h200");
  std::set<std::uint64_t> bytes_moved;
  for (const std::uint64_t limit :
       {std::uint64_t{0}, std::uint64_t{1} << 20, std::uint64_t{96} << 10, std::uint64_t{24} << 10})
    for (const sg_memory_kind place : {SG_MEMORY_PAGEABLE, SG_MEMORY_PINNED})
      for (const int layout : {0, 1})
        for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T}) {
          gemm_case g;
          g.in = g.out = SG_DTYPE_F32;
          g.m = 150;
          g.n = 140;
          g.k = 160;
          g.beta = {2, 0};
          g.op_a = op;
          g.layout_b = static_cast<sg_layout>(layout);
          g.place_a = g.place_b = g.place_c = place;
          g.options.memory_limit = limit;
          sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
          ASSERT_EQ("", run_gemm_case(context, g, &stats)) << g.text();
          bytes_moved.insert(stats.bytes_in);
        }
  EXPECT_GT(bytes_moved.size(), 1u) << "the limits made no difference, so they were not tested";
}

context with_little_memory() {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "sim:h200";
  options.memory_limit = std::uint64_t{3} << 20;
  options.staging_threads = 2;
  context made;
  EXPECT_OK(sg_context_create(&options, made.out()));
  return made;
}

// The running job has all the memory; a waiting job of any priority starts when the memory is released.
TEST(gemm_memory_limits, jobs_of_all_priorities_share_the_memory) {
  const context on = with_little_memory();
  constexpr std::int64_t size = 40, depth = 384 * size;
  const std::vector<double> a(size * depth, 1), b(depth * size, 2);
  std::vector<std::vector<double>> c(6, std::vector<double>(size * size, -1));
  for (int round = 0; round < 3; ++round) {
    std::vector<job> jobs(c.size());
    for (std::size_t i = 0; i < c.size(); ++i) {
      const sg_gemm_desc wanted = make_gemm(a.data(), b.data(), c[i].data(), size, size, depth);
      sg_submit how = SG_SUBMIT_INIT;
      how.priority = std::int32_t(i % 3) - 1;
      ASSERT_OK(sg_gemm_async(on, &wanted, &how, jobs[i].out()));
    }
    for (const job &one : jobs) ASSERT_OK(sg_job_wait(one, 60 * std::int64_t{1'000'000'000}, nullptr));
    for (auto &result : c) {
      ASSERT_EQ(std::vector<double>(size * size, 2.0 * depth), result);
      std::fill(result.begin(), result.end(), -1);
    }
  }
}

// A high-priority run that needs all the memory, behind many that take a third each, must start before all of them have
// completed. Whether all are queued before the first ones complete depends on the machine: one of several attempts has
// to show it.
TEST(gemm_memory_limits, high_priority_goes_ahead_of_waiting_runs) {
  const context on = with_little_memory();
  constexpr std::int64_t size = 40, most = 384 * size;
  constexpr std::size_t others = 30;
  const std::vector<double> a(size * most, 1), b(most * size, 2);
  std::vector<std::vector<double>> c(others + 1, std::vector<double>(size * size, -1));
  bool ahead = false;
  for (int attempt = 0; attempt < 5 && !ahead; ++attempt) {
    std::vector<job> jobs(c.size());
    for (std::size_t i = 0; i < c.size(); ++i) {
      const bool urgent = i == others;
      const sg_gemm_desc wanted = make_gemm(a.data(), b.data(), c[i].data(), size, size, urgent ? most : most / 10);
      sg_submit how = SG_SUBMIT_INIT;
      how.priority = urgent ? 1 : 0;
      ASSERT_OK(sg_gemm_async(on, &wanted, &how, jobs[i].out()));
    }
    ASSERT_OK(sg_job_wait(jobs[others], 60 * std::int64_t{1'000'000'000}, nullptr));
    ahead = sg_job_wait(jobs[others - 1], 0, nullptr) == SG_STATUS_TIMEOUT;
    for (const job &one : jobs) ASSERT_OK(sg_job_wait(one, 60 * std::int64_t{1'000'000'000}, nullptr));
  }
  EXPECT_TRUE(ahead) << "it waited for all of them every time";
}

TEST(gemm_memory_limits, a_limit_that_no_tile_fits) {
  const context context = open_context("sim:h200");
  gemm_case g;
  g.m = g.n = g.k = 64;
  g.options.memory_limit = 64;
  const std::string seen = run_gemm_case(context, g);
  EXPECT_NE(std::string::npos, seen.find("SG_STATUS_OUT_OF_MEMORY")) << seen;
}

// With beta == 0 no byte of C is copied to the device, whatever the strategy; with beta != 0 all of it is.
TEST(gemm_traffic, each_byte_moves_once) {
  const context context = open_context("sim:h200");
  for (const double beta : {0.0, 1.0})
    for (const sg_memory_kind place : {SG_MEMORY_PAGEABLE, SG_MEMORY_PINNED}) {
      gemm_case g;
      g.m = 64;
      g.n = 48;
      g.k = 32;
      g.beta = {beta, 0};
      g.place_a = g.place_b = g.place_c = place;
      sg_job_statistics stats = SG_JOB_STATISTICS_INIT;
      ASSERT_EQ("", run_gemm_case(context, g, &stats)) << g.text();
      const std::uint64_t inputs = 8 * (64 * 32 + 32 * 48), result = 8 * 64 * 48;
      EXPECT_EQ(inputs + (beta != 0 ? result : 0), stats.bytes_in);
      EXPECT_EQ(result, stats.bytes_out);
      EXPECT_EQ(2.0 * 64 * 48 * 32, stats.flops);
    }
}

}  // namespace
}  // namespace sg_test
