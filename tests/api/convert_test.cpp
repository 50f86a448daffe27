// SPDX-License-Identifier: Apache-2.0
// The operations of convert.h: packing of values, order by memory, recording in graphs, statistics, refused calls.
// tests/backend/convert_test.cpp tries the arithmetic.
#include <cmath>
#include <cstring>

#include "support/numbers.hpp"
#include "support/placed_values.hpp"

namespace sg_test {
namespace {

using bytes = std::vector<std::int8_t>;
using floats = std::vector<float>;

class convert : public placed_values {
 protected:
  static sg_matrix view(float *data, std::int64_t rows, std::int64_t cols, std::int64_t ld = 0) {
    return {data, rows, cols, ld, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  }
  static sg_matrix view(std::int8_t *data, std::int64_t rows, std::int64_t cols, std::int64_t ld = 0) {
    return {data, rows, cols, ld, SG_DTYPE_I8, SG_LAYOUT_ROW_MAJOR};
  }
  static sg_matrix view(double *data, std::int64_t rows, std::int64_t cols, std::int64_t ld = 0,
                        sg_layout layout = SG_LAYOUT_ROW_MAJOR) {
    return {data, rows, cols, ld, SG_DTYPE_F64, layout};
  }
  static sg_convert_desc conversion(sg_matrix a, sg_matrix c, sg_transpose op = SG_TRANSPOSE_N) {
    sg_convert_desc desc = SG_CONVERT_DESC_INIT;
    desc.a = a, desc.c = c, desc.op_a = op;
    return desc;
  }
  static sg_dequantize_desc dequantize(sg_quantization quantization, std::int64_t block_size, sg_matrix x,
                                       sg_matrix scales, sg_matrix y) {
    sg_dequantize_desc desc = SG_DEQUANTIZE_DESC_INIT;
    desc.quantization = quantization, desc.block_size = block_size;
    desc.x = x, desc.scales = scales, desc.y = y;
    return desc;
  }
};

TEST_P(convert, the_first_of_two_values_is_in_the_low_bits) {
  const auto x = place(bytes{0x10, 0x32, -2, 0x78});  // 0 1 2 3, -2 -1 -8 7
  const auto scales = place(floats{1, 10, 100, 0.5});
  const auto y = place(floats(9, -1.0f));
  sg_dequantize_desc desc = dequantize(SG_QUANTIZATION_I4, 2, view(x, 2, 2), view(scales, 2, 2), view(y, 2, 4, 5));
  ASSERT_OK(sg_dequantize(context_, &desc, nullptr));
  EXPECT_EQ((floats{0, 1, 20, 30, -1, -200, -100, -4, 3.5}), fetch(y, 9));
  const auto zero_points = place(bytes{1, 0, -8, 127});
  desc.zero_points = view(zero_points, 2, 2);
  ASSERT_OK(sg_dequantize(context_, &desc, nullptr));
  EXPECT_EQ((floats{-1, 0, 20, 30, -1, 600, 700, -67.5, -60}), fetch(y, 9));
}

// The descriptor's comment says how GGML's blocks are given.
TEST_P(convert, blocks_of_ggml) {
  random_source random(3);
  bytes q8(64), q4(32);  // two blocks each
  for (std::int8_t &each : q8) each = std::int8_t(random.below(256) - 128);
  for (std::int8_t &each : q4) each = std::int8_t(random.below(256) - 128);
  const auto scales = place(floats{0.25, 3});
  const auto y = place(floats(64));
  const auto x8 = place(q8);
  const sg_dequantize_desc of_q8 =
      dequantize(SG_QUANTIZATION_I8, 32, view(x8, 1, 64), view(scales, 1, 2), view(y, 1, 64));
  ASSERT_OK(sg_dequantize(context_, &of_q8, nullptr));
  floats found = fetch(y, 64);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(float(q8[i]) * (i < 32 ? 0.25f : 3.0f), found[i]) << i;

  const auto nibble = [&](std::size_t column) {  // as Q4_0 stores it: 0 to 15
    const std::size_t block = column / 32, at = column % 32;
    return (q4[block * 16 + at % 16] >> (at < 16 ? 0 : 4)) & 15;
  };
  bytes repacked(32);
  for (std::size_t j = 0; j < 32; ++j)
    repacked[j] = std::int8_t(std::uint8_t(nibble(2 * j) | nibble(2 * j + 1) << 4) ^ 0x88);
  const auto x4 = place(repacked);
  const sg_dequantize_desc of_q4 =
      dequantize(SG_QUANTIZATION_I4, 32, view(x4, 1, 32), view(scales, 1, 2), view(y, 1, 64));
  ASSERT_OK(sg_dequantize(context_, &of_q4, nullptr));
  found = fetch(y, 64);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(float(nibble(i) - 8) * (i < 32 ? 0.25f : 3.0f), found[i]) << i;
}

// On cores, long operations are split between workers.
TEST_P(convert, dequantize_large_matrices) {
  constexpr std::int64_t rows = 700, cols = 640, block = 64, x_ld = cols / 2 + 3, y_ld = cols + 1;
  bytes values(rows * x_ld), zeros(rows * (cols / block));
  floats factors(rows * (cols / block));
  random_source random(7);
  for (std::int8_t &each : values) each = std::int8_t(random.below(256) - 128);
  for (std::int8_t &each : zeros) each = std::int8_t(random.below(16) - 8);
  for (float &each : factors) each = float(random.real());
  const auto x = place(values), zero_points = place(zeros);
  const auto scales = place(factors), y = place(floats(rows * y_ld, 99.0f));
  sg_dequantize_desc desc = dequantize(SG_QUANTIZATION_I4, block, view(x, rows, cols / 2, x_ld),
                                       view(scales, rows, cols / block), view(y, rows, cols, y_ld));
  desc.zero_points = view(zero_points, rows, cols / block);
  ASSERT_OK(sg_dequantize(context_, &desc, nullptr));
  const floats found = fetch(y, rows * y_ld);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      const int byte = values[std::size_t(i * x_ld + j / 2)], bits = (j % 2 == 0 ? byte : byte >> 4) & 15;
      const auto of_block = std::size_t(i * (cols / block) + j / block);
      const int value = (bits < 8 ? bits : bits - 16) - zeros[of_block];
      ASSERT_EQ(float(value) * factors[of_block], found[std::size_t(i * y_ld + j)]) << i << ", " << j;
    }
    ASSERT_EQ(99.0f, found[std::size_t(i * y_ld + cols)]) << "a gap was written";
  }
}

TEST_P(convert, ops_and_layouts_of_conversions) {
  const auto a = place(std::vector<double>{1, 2, 3, 4, 5, 6});
  const auto c = place(floats(7, 9.0f));
  const auto run = [&](sg_transpose op, sg_layout from, sg_layout to, std::int64_t rows, std::int64_t cols) {
    const bool transposes = op != SG_TRANSPOSE_N;
    sg_convert_desc desc =
        conversion(view(a, rows, cols, 0, from), view(c, transposes ? cols : rows, transposes ? rows : cols), op);
    desc.c.layout = to;
    EXPECT_OK(sg_convert(context_, &desc, nullptr));
    return fetch(c, 7);
  };
  const floats same = {1, 2, 3, 4, 5, 6, 9}, turned = {1, 4, 2, 5, 3, 6, 9};
  constexpr sg_layout by_rows = SG_LAYOUT_ROW_MAJOR, by_columns = SG_LAYOUT_COLUMN_MAJOR;
  EXPECT_EQ(same, run(SG_TRANSPOSE_N, by_rows, by_rows, 2, 3));
  EXPECT_EQ(turned, run(SG_TRANSPOSE_T, by_rows, by_rows, 2, 3));
  EXPECT_EQ(turned, run(SG_TRANSPOSE_N, by_rows, by_columns, 2, 3));
  EXPECT_EQ(same, run(SG_TRANSPOSE_C, by_rows, by_columns, 2, 3));
  EXPECT_EQ(turned, run(SG_TRANSPOSE_N, by_columns, by_rows, 3, 2));
  EXPECT_EQ(same, run(SG_TRANSPOSE_N, by_columns, by_columns, 3, 2));
  EXPECT_EQ(turned, run(SG_TRANSPOSE_T, by_columns, by_columns, 3, 2));
}

// On cores, long operations are split between workers, by columns or by rows of the result.
TEST_P(convert, a_vector_is_its_own_transpose_in_place) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const placed<double> x = place(values);
  const sg_matrix row = view(x, 1, 6), column = view(x, 6, 1, 0, SG_LAYOUT_COLUMN_MAJOR);
  const sg_matrix spaced_row = view(x, 1, 3, 2, SG_LAYOUT_COLUMN_MAJOR), spaced_column = view(x, 3, 1, 2);
  for (const auto &[a, c] : {std::pair{row, column}, {column, row}, {spaced_row, spaced_column}}) {
    const sg_convert_desc desc = conversion(a, c, SG_TRANSPOSE_T);
    EXPECT_OK(sg_convert(context_, &desc, nullptr));
    EXPECT_EQ(values, fetch(x, values.size()));
  }
}

TEST_P(convert, convert_large_matrices) {
  random_source random(7);
  for (const auto &[rows, cols] : {std::pair<std::int64_t, std::int64_t>{900, 700}, {3, 300000}, {300000, 3}}) {
    std::vector<double> values(std::size_t(rows * cols));
    for (double &each : values) each = random.real();
    const auto a = place(values);
    const auto c = place(floats(values.size()));
    for (const bool transposes : {false, true}) {
      const sg_convert_desc desc =
          conversion(view(a, rows, cols), transposes ? view(c, cols, rows) : view(c, rows, cols),
                     transposes ? SG_TRANSPOSE_T : SG_TRANSPOSE_N);
      ASSERT_OK(sg_convert(context_, &desc, nullptr));
      const floats found = fetch(c, values.size());
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < cols; ++j)
          ASSERT_EQ(float(values[std::size_t(i * cols + j)]),
                    found[std::size_t(transposes ? j * rows + i : i * cols + j)])
              << i << ", " << j;
    }
  }
}

TEST_P(convert, conversions_are_recorded_and_updated) {
  const auto a = place(std::vector<double>{1, 2, 3, 4}), other = place(std::vector<double>{5, 6, 7, 8});
  const auto c = place(floats(4));
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  sg_convert_desc desc = conversion(view(a, 2, 2), view(c, 2, 2));
  ASSERT_OK(sg_convert_async(context_, &desc, &record, nullptr));
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_CONVERT, update.desc = &desc;
  desc.a.data = other;
  ASSERT_OK(sg_graph_update(graph, 0, &update));
  desc.a = view(a, 2, 2), desc.op_a = SG_TRANSPOSE_T;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "operation->desc differs")) << sg_last_error_message();
  job handle;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  EXPECT_EQ((floats{5, 6, 7, 8}), fetch(c, 4));
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(convert, wrong_conversions_name_the_field) {
  const floats before(16, 7.0f);
  const auto a = place(std::vector<double>(4));
  const auto c = place(before);
  const auto bad = [&](sg_status status, const char *part, auto &&spoil) {
    sg_convert_desc desc = conversion(view(a, 2, 2), view(c, 2, 2));
    spoil(desc);
    EXPECT_STATUS(status, sg_convert(context_, &desc, nullptr)) << part;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message();
  };
  using d = sg_convert_desc;
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT, unsupported = SG_STATUS_UNSUPPORTED;
  bad(invalid, "desc->op_a is 3", [](d &o) { o.op_a = sg_transpose(3); });
  bad(invalid, "desc->a is 2 x 1; with desc->c of 2 x 2 it must be 2 x 2", [](d &o) { o.a.cols = 1; });
  bad(invalid, "desc->a is 2 x 2; with desc->c of 2 x 3 it must be 3 x 2",
      [](d &o) { o.c.cols = 3, o.op_a = SG_TRANSPOSE_T; });
  bad(unsupported, "desc->a.dtype is i32", [](d &o) { o.a.dtype = SG_DTYPE_I32; });
  bad(unsupported, "desc->c.dtype is c64", [](d &o) { o.c.dtype = SG_DTYPE_C64; });
  bad(invalid, "desc->reserved is 1", [](d &o) { o.reserved = 1; });
  bad(invalid, "desc->a.data is NULL", [](d &o) { o.a.data = nullptr; });
  bad(invalid, "overlap", [&](d &o) { o.a.data = c.data; });                   // f64 over f32
  bad(invalid, "overlap", [&](d &o) { o.a = o.c, o.op_a = SG_TRANSPOSE_T; });  // transposed in place
  bad(invalid, "overlap", [&](d &o) { o.a = view(c, 2, 2, 3); });              // another leading dimension
  bad(invalid, "overlap", [&](d &o) { o.a = o.c, o.a.data = c.data + 1; });    // shifted
  EXPECT_EQ(before, fetch(c, 16));
  const sg_convert_desc itself = conversion(view(c, 4, 4), view(c, 4, 4));
  EXPECT_OK(sg_convert(context_, &itself, nullptr));
  EXPECT_EQ(before, fetch(c, 16));
  const sg_convert_desc empty = conversion(view(static_cast<double *>(nullptr), 0, 3), view(c, 0, 3));
  EXPECT_OK(sg_convert(context_, &empty, nullptr));
  EXPECT_STATUS(invalid, sg_convert(context_, nullptr, nullptr));
}

// Quantized weights are copied, dequantized and multiplied without waits: the order follows from the data.
TEST_P(convert, follows_the_copy_that_brings_the_weights) {
  constexpr std::int64_t n = 64;
  const auto weights = place(bytes(n * n));
  const auto scales = place(floats(n * n / 32, 0.5f)), wide = place(floats(n * n));
  const auto ones = place(floats(n * n, 1.0f)), sums = place(floats(n * n));
  for (int turn = 1; turn < 20; ++turn) {
    const bytes given(n * n, std::int8_t(2 * turn));
    floats result(n * n);
    ASSERT_OK(sg_copy_async(context_, weights, given.data(), n * n, nullptr, nullptr));
    const sg_dequantize_desc desc =
        dequantize(SG_QUANTIZATION_I8, 32, view(weights, n, n), view(scales, n, n / 32), view(wide, n, n));
    ASSERT_OK(sg_dequantize_async(context_, &desc, nullptr, nullptr));
    sg_gemm_desc gemm = SG_GEMM_DESC_INIT;
    gemm.a = view(wide, n, n), gemm.b = view(ones, n, n), gemm.c = view(sums, n, n);
    ASSERT_OK(sg_gemm_async(context_, &gemm, nullptr, nullptr));
    job copied;
    ASSERT_OK(sg_copy_async(context_, result.data(), sums, n * n * sizeof(float), nullptr, copied.out()));
    ASSERT_OK(sg_job_wait(copied, SG_FOREVER, nullptr));
    ASSERT_EQ(floats(n * n, float(turn * n)), result);
  }
}

TEST_P(convert, is_recorded_in_a_graph_and_updated) {
  const auto x = place(bytes{1, 2}), other = place(bytes{3, 4});
  const auto scales = place(floats{10}), y = place(floats{0, 0});
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  sg_dequantize_desc desc = dequantize(SG_QUANTIZATION_I8, 2, view(x, 1, 2), view(scales, 1, 1), view(y, 1, 2));
  ASSERT_OK(sg_dequantize_async(context_, &desc, &record, nullptr));
  const auto run = [&] {
    job handle;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  };
  run();
  EXPECT_EQ((floats{10, 20}), fetch(y, 2));
  desc.x.data = other;
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_DEQUANTIZE, update.desc = &desc;
  ASSERT_OK(sg_graph_update(graph, 0, &update));
  run();
  EXPECT_EQ((floats{30, 40}), fetch(y, 2));
  const auto refused = [&](const char *part) {
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message();
  };
  desc.quantization = SG_QUANTIZATION_I4, desc.x.cols = 1;
  refused("operation->desc differs from submission 0 of the graph in its sizes");
  desc = dequantize(SG_QUANTIZATION_I8, 2, view(x, 1, 2), view(scales, 1, 1), view(y, 1, 2));
  desc.zero_points = view(other, 1, 1);
  refused("operation->desc differs from submission 0 of the graph in its sizes");
  update.desc = nullptr;
  refused("operation->desc is NULL");
  run();
  EXPECT_EQ((floats{30, 40}), fetch(y, 2));
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(convert, statistics_name_the_operation) {
  const auto x = place(bytes(64, 1));
  const auto scales = place(floats(4, 1.0f)), y = place(floats(128));
  job handle;
  const sg_dequantize_desc desc =
      dequantize(SG_QUANTIZATION_I4, 32, view(x, 2, 32), view(scales, 2, 2), view(y, 2, 64));
  ASSERT_OK(sg_dequantize_async(context_, &desc, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  sg_job_statistics found = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(handle, &found));
  EXPECT_STREQ("dequantize i4", found.strategy);
  EXPECT_EQ(256, found.flops);
  EXPECT_LT(0, found.bound_seconds);
  EXPECT_LE(found.bound_seconds, found.predicted_seconds);
}

TEST_P(convert, empty_matrices_succeed) {
  std::int8_t *const none = nullptr;
  float *const nothing = nullptr;
  const sg_dequantize_desc no_rows =
      dequantize(SG_QUANTIZATION_I8, 32, view(none, 0, 64), view(nothing, 0, 2), view(nothing, 0, 64));
  const sg_dequantize_desc no_columns =
      dequantize(SG_QUANTIZATION_I4, 32, view(none, 5, 0), view(nothing, 5, 0), view(nothing, 5, 0));
  EXPECT_OK(sg_dequantize(context_, &no_rows, nullptr));
  EXPECT_OK(sg_dequantize(context_, &no_columns, nullptr));
}

TEST_P(convert, wrong_dequantizations_name_the_field) {
  const floats before(8, 7.0f);
  const auto x = place(bytes(8)), zero_points = place(bytes(8));
  const auto scales = place(floats(8)), y = place(before);
  const auto bad = [&](sg_status status, const char *part, auto &&spoil) {
    sg_dequantize_desc desc = dequantize(SG_QUANTIZATION_I8, 2, view(x, 2, 4), view(scales, 2, 2), view(y, 2, 4));
    desc.zero_points = view(zero_points, 2, 2);
    spoil(desc);
    EXPECT_STATUS(status, sg_dequantize(context_, &desc, nullptr)) << part;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message();
  };
  using d = sg_dequantize_desc;
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT, unsupported = SG_STATUS_UNSUPPORTED;
  bad(invalid, "desc->quantization is 0", [](d &o) { o.quantization = sg_quantization(0); });
  bad(invalid, "desc->quantization is 3", [](d &o) { o.quantization = sg_quantization(3); });
  bad(invalid, "desc->block_size is 0", [](d &o) { o.block_size = 0; });
  bad(invalid, "desc->block_size is -2", [](d &o) { o.block_size = -2; });
  bad(invalid, "desc->block_size is 1", [](d &o) { o.block_size = 1; });
  bad(invalid, "desc->block_size is 6; it must be positive, even and a divisor of the 4 columns of desc->y",
      [](d &o) { o.block_size = 6; });
  bad(invalid, "desc->x is 2 x 4; with desc->y of 2 x 4 it must be 2 x 2",
      [](d &o) { o.quantization = SG_QUANTIZATION_I4; });
  bad(invalid, "desc->x is 1 x 4", [](d &o) { o.x.rows = 1; });
  bad(invalid, "desc->scales is 2 x 2; with desc->y of 2 x 4 it must be 2 x 1", [](d &o) { o.block_size = 4; });
  bad(invalid, "desc->zero_points is 1 x 2", [](d &o) { o.zero_points.rows = 1; });
  bad(invalid, "desc->y.ld is 3", [](d &o) { o.y.ld = 3; });
  bad(invalid, "desc->x.data is NULL", [](d &o) { o.x.data = nullptr; });
  bad(invalid, "desc->scales.data is NULL", [](d &o) { o.scales.data = nullptr; });
  bad(invalid, "desc->scales.data is", [&](d &o) { o.scales.data = reinterpret_cast<char *>(scales.data) + 2; });
  bad(unsupported, "desc->x.dtype is i32; it must be i8", [](d &o) { o.x.dtype = SG_DTYPE_I32; });
  bad(unsupported, "desc->zero_points.dtype is f32", [](d &o) { o.zero_points.dtype = SG_DTYPE_F32; });
  bad(unsupported, "desc->scales.dtype is f64", [](d &o) { o.scales.dtype = SG_DTYPE_F64; });
  bad(unsupported, "desc->y.dtype is f64", [](d &o) { o.y.dtype = SG_DTYPE_F64; });
  bad(unsupported, "desc->x.layout is 1; of i8 it must be row-major",
      [](d &o) { o.x.layout = SG_LAYOUT_COLUMN_MAJOR; });
  bad(invalid, "desc->reserved is 1", [](d &o) { o.reserved = 1; });
  bad(invalid, "desc->struct_size", [](d &o) { o.struct_size = 8; });
  bad(invalid, "desc->x (", [&](d &o) { o.x.data = y.data; });
  bad(invalid, "desc->scales (", [&](d &o) { o.scales.data = y.data + 3; });
  bad(invalid, "desc->zero_points (", [&](d &o) { o.zero_points.data = y.data + 7; });
  EXPECT_EQ(before, fetch(y, 8));
  const sg_dequantize_desc good = dequantize(SG_QUANTIZATION_I8, 2, view(x, 2, 4), view(scales, 2, 2), view(y, 2, 4));
  EXPECT_STATUS(invalid, sg_dequantize(context_, nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_dequantize(reinterpret_cast<sg_context *>(1), &good, nullptr));
}

ON_EACH_DEVICE(convert);

}  // namespace
}  // namespace sg_test
