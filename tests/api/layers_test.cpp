// SPDX-License-Identifier: Apache-2.0
// The operations of layers.h: layouts, order after the jobs that write their operands, graphs, statistics, refused
// calls. tests/backend/layers_test.cpp tries the arithmetic.
#include <cmath>
#include <cstring>

#include "support/numbers.hpp"
#include "support/placed_values.hpp"

namespace sg_test {
namespace {

using doubles = std::vector<double>;

class layers : public placed_values {
 protected:
  using on_device = placed<double>;
  on_device place(const std::vector<double> &values) { return placed_values::place(values); }
  static sg_matrix view(double *data, std::int64_t rows, std::int64_t cols, std::int64_t ld = 0,
                        sg_layout layout = SG_LAYOUT_ROW_MAJOR) {
    return {data, rows, cols, ld, SG_DTYPE_F64, layout};
  }
  static sg_elementwise_desc function(sg_function f, sg_matrix a, sg_matrix c, sg_matrix b = {}) {
    sg_elementwise_desc desc = SG_ELEMENTWISE_DESC_INIT;
    desc.function = f, desc.a = a, desc.c = c;
    if (b.data) desc.b = b;
    return desc;
  }
  static sg_softmax_desc softmax(sg_matrix x, sg_matrix y) {
    sg_softmax_desc desc = SG_SOFTMAX_DESC_INIT;
    desc.x = x, desc.y = y;
    return desc;
  }
  static sg_norm_desc norm(sg_matrix x, sg_matrix y) {
    sg_norm_desc desc = SG_NORM_DESC_INIT;
    desc.x = x, desc.y = y;
    return desc;
  }
  static sg_rotary_desc rotary(sg_matrix x, sg_matrix y) {
    sg_rotary_desc desc = SG_ROTARY_DESC_INIT;
    desc.x = x, desc.y = y;
    return desc;
  }
  static void expect_near(const doubles &wanted, const doubles &found) {
    ASSERT_EQ(wanted.size(), found.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(wanted[i], found[i], 1e-14) << i;
  }
};

TEST_P(layers, softmax_is_over_rows_in_both_layouts) {
  const double e = std::exp(1), a = 1 / (1 + e), b = e / (1 + e);
  const on_device x = place({0, 1, 5, 1, 1, 6}), y = place(doubles(6, 9));
  const sg_softmax_desc by_rows = softmax(view(x, 2, 2, 3), view(y, 2, 2, 3));
  ASSERT_OK(sg_softmax(context_, &by_rows, nullptr));
  expect_near({a, b, 9, 0.5, 0.5, 9}, fetch(y, 6));
  const sg_softmax_desc by_columns =
      softmax(view(x, 2, 2, 3, SG_LAYOUT_COLUMN_MAJOR), view(y, 2, 2, 3, SG_LAYOUT_COLUMN_MAJOR));
  ASSERT_OK(sg_softmax(context_, &by_columns, nullptr));  // rows (0, 1) and (1, 1)
  expect_near({a, 0.5, 9, b, 0.5, 9}, fetch(y, 6));
}

TEST_P(layers, a_causal_mask_hides_what_is_behind_it) {
  const on_device x = place({0, NAN, INFINITY, 0, 0, NAN, 0, 0, 0});
  sg_softmax_desc desc = softmax(view(x, 3, 3), view(x, 3, 3));  // in place
  desc.mask = SG_MASK_CAUSAL;
  ASSERT_OK(sg_softmax(context_, &desc, nullptr));
  expect_near({1, 0, 0, 0.5, 0.5, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3}, fetch(x, 9));
  desc.mask_offset = -1;
  ASSERT_OK(sg_softmax(context_, &desc, nullptr));
  EXPECT_EQ((doubles{0, 0, 0}), doubles(fetch(x, 3)));
}

TEST_P(layers, a_causal_mask_starts_again_in_each_matrix_of_a_stack) {
  const on_device x = place(doubles(12));
  sg_softmax_desc desc = softmax(view(x, 6, 2), view(x, 6, 2));
  desc.mask = SG_MASK_CAUSAL, desc.mask_rows = 2;
  ASSERT_OK(sg_softmax(context_, &desc, nullptr));
  EXPECT_EQ((doubles{1, 0, 0.5, 0.5, 1, 0, 0.5, 0.5, 1, 0, 0.5, 0.5}), fetch(x, 12));
}

TEST_P(layers, norms_with_gamma_and_beta) {
  const on_device x = place({1, 3, -2, 2}), y = place(doubles(4)), gamma = place({2, 3}), beta = place({10, 20});
  sg_norm_desc desc = norm(view(x, 2, 2), view(y, 2, 2));
  desc.gamma = gamma, desc.beta = beta, desc.epsilon = 0;
  ASSERT_OK(sg_norm(context_, &desc, nullptr));
  expect_near({10 - 2, 20 + 3, 10 - 2, 20 + 3}, fetch(y, 4));
  desc.kind = SG_NORM_RMS, desc.beta = nullptr;
  ASSERT_OK(sg_norm(context_, &desc, nullptr));
  expect_near({2 / std::sqrt(5), 9 / std::sqrt(5), -2, 3}, fetch(y, 4));
}

TEST_P(layers, rotary_embedding_of_both_kinds_of_pairs) {
  const double c = std::cos(1), s = std::sin(1);
  const on_device x = place({1, 0, 5, 2, 1, 0, 5, 2}), y = place(doubles(8));  // the second row is rotated by 1
  sg_rotary_desc desc = rotary(view(x, 2, 4), view(y, 2, 4));
  desc.head_size = 4, desc.rotated_size = 2;
  ASSERT_OK(sg_rotary(context_, &desc, nullptr));
  expect_near({1, 0, 5, 2, c, s, 5, 2}, fetch(y, 8));
  desc.rotated_size = 0, desc.theta = 1;  // halves: (1, 5) and (0, 2)
  ASSERT_OK(sg_rotary(context_, &desc, nullptr));
  expect_near({1, 0, 5, 2, c - 5 * s, -2 * s, s + 5 * c, 2 * c}, fetch(y, 8));
  desc.pairs = SG_ROTARY_INTERLEAVED, desc.head_size = 2;  // (1, 0) and (5, 2), of a head each
  ASSERT_OK(sg_rotary(context_, &desc, nullptr));
  expect_near({1, 0, 5, 2, c, s, 5 * c - 2 * s, 5 * s + 2 * c}, fetch(y, 8));
  desc.x = desc.y, desc.inverse = 1;
  ASSERT_OK(sg_rotary(context_, &desc, nullptr));
  expect_near({1, 0, 5, 2, 1, 0, 5, 2}, fetch(y, 8));
}

TEST_P(layers, rotary_embedding_by_tables) {
  const on_device x = place({1, 2, 1, 2, 1, 2}), y = place(doubles(6)), cos = place({9, 2, 3}), sin = place({9, 5, 7});
  sg_rotary_desc desc = rotary(view(x, 3, 2), view(y, 3, 2));
  desc.cos = view(cos, 3, 1), desc.sin = view(sin, 3, 1);
  desc.first_position = 1, desc.sequence_length = 2;
  ASSERT_OK(sg_rotary(context_, &desc, nullptr));  // by rows 1, 2 and 1
  expect_near({2 - 10, 5 + 4, 3 - 14, 7 + 6, 2 - 10, 5 + 4}, fetch(y, 6));
}

TEST_P(layers, gradients_are_central_differences) {
  constexpr std::size_t count = 400;
  constexpr double h = 1e-5;
  doubles points, less, more;
  for (std::size_t i = 0; i < count; ++i) {
    points.push_back((double(i) - 200.5) / 20);  // from -10 to 10, without 0
    less.push_back(points[i] - h);
    more.push_back(points[i] + h);
  }
  const on_device x = place(points), below = place(less), above = place(more), out = place(doubles(count));
  const on_device factors = place(doubles(count, 2.0));
  const auto matrix = [](double *data) { return view(data, 1, count); };
  for (int f = SG_FUNCTION_RELU; f <= SG_FUNCTION_TANH; ++f) {
    const auto values = [&](sg_elementwise_desc desc) {
      EXPECT_OK(sg_elementwise(context_, &desc, nullptr));
      return fetch(out, count);
    };
    const doubles first = values(function(sg_function(f), matrix(below), matrix(out)));
    const doubles second = values(function(sg_function(f), matrix(above), matrix(out)));
    const sg_function gradient = sg_function(f + SG_FUNCTION_RELU_GRADIENT - SG_FUNCTION_RELU);
    const doubles found = values(function(gradient, matrix(factors), matrix(out), matrix(x)));
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_NEAR((second[i] - first[i]) / h, found[i], 2e-9) << "function " << f << " at " << points[i];
  }
}

// On cores, long operations are split between workers.
TEST_P(layers, large_matrices) {
  constexpr std::int64_t rows = 700, cols = 600, ld = 601;
  doubles values(rows * ld);
  random_source random(7);
  for (double &each : values) each = random.real();
  for (const sg_layout layout : {SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR}) {
    const bool by_rows = layout == SG_LAYOUT_ROW_MAJOR;
    const auto matrix = [&](double *data) {
      return view(data, by_rows ? rows : cols, by_rows ? cols : rows, ld, layout);
    };
    const on_device x = place(values), y = place(values);
    const sg_elementwise_desc add = function(SG_FUNCTION_ADD, matrix(x), matrix(y), matrix(y));
    ASSERT_OK(sg_elementwise(context_, &add, nullptr));
    sg_softmax_desc desc = softmax(matrix(x), matrix(x));
    desc.mask = SG_MASK_CAUSAL, desc.mask_offset = 2;
    ASSERT_OK(sg_softmax(context_, &desc, nullptr));
    const doubles sums = fetch(y, values.size()), found = fetch(x, values.size());
    const auto at = [&](std::int64_t i, std::int64_t j) { return std::size_t(by_rows ? i * ld + j : i + j * ld); };
    const std::int64_t r = by_rows ? rows : cols, c = by_rows ? cols : rows;
    for (std::int64_t i = 0; i < r; ++i) {
      double sum = 0;
      const std::int64_t visible = std::min(c, i + 3);
      for (std::int64_t j = 0; j < visible; ++j) sum += std::exp(values[at(i, j)]);
      for (std::int64_t j = 0; j < c; ++j) {
        ASSERT_EQ(2 * values[at(i, j)], sums[at(i, j)]);
        ASSERT_NEAR(j < visible ? std::exp(values[at(i, j)]) / sum : 0, found[at(i, j)], 1e-13) << i << ", " << j;
      }
    }
    for (std::int64_t i = 0; i < rows; ++i)
      ASSERT_EQ(values[std::size_t(i * ld + cols)], found[std::size_t(i * ld + cols)]);
  }
}

// GEMM, softmax and GEMM without waits between them: the order follows from the data.
TEST_P(layers, follow_the_jobs_that_write_their_operands) {
  constexpr std::int64_t n = 64;
  const on_device x = place(doubles(n * n, 1.0)), y = place(doubles(n * n)), z = place(doubles(n * n));
  for (int turn = 0; turn < 20; ++turn) {
    doubles result(n * n);
    const sg_gemm_desc first = make_gemm(x, x, y, n, n, n), second = make_gemm(y, x, z, n, n, n);
    ASSERT_OK(sg_gemm_async(context_, &first, nullptr, nullptr));  // y = 64
    const sg_softmax_desc rows = softmax(view(y, n, n), view(y, n, n));
    ASSERT_OK(sg_softmax_async(context_, &rows, nullptr, nullptr));  // y = 1/64
    const sg_elementwise_desc add = function(SG_FUNCTION_ADD, view(y, n, n), view(y, n, n), view(x, n, n));
    ASSERT_OK(sg_elementwise_async(context_, &add, nullptr, nullptr));  // y = 1/64 + 1
    ASSERT_OK(sg_gemm_async(context_, &second, nullptr, nullptr));      // z = 1 + 64
    job copied;
    ASSERT_OK(sg_copy_async(context_, result.data(), z, n * n * sizeof(double), nullptr, copied.out()));
    ASSERT_OK(sg_job_wait(copied, SG_FOREVER, nullptr));
    ASSERT_EQ(doubles(n * n, 65.0), result);
  }
}

// On cores, long operations are split between workers: positions go on in the second part.
TEST_P(layers, rotary_embedding_of_large_matrices) {
  constexpr std::int64_t rows = 900, cols = 256, sequence = 130;
  doubles values(rows * cols);
  random_source random(5);
  for (double &each : values) each = random.real();
  const on_device x = place(values);
  sg_rotary_desc desc = rotary(view(x, rows, cols), view(x, rows, cols));
  desc.head_size = 64, desc.sequence_length = sequence, desc.first_position = 11;
  ASSERT_OK(sg_rotary(context_, &desc, nullptr));
  const doubles found = fetch(x, values.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < 32; ++j) {
      const double angle = double(11 + i % sequence) * std::pow(10000.0, -double(j) / 32);
      const auto at = std::size_t(i * cols + 128 + j);
      ASSERT_NEAR(values[at] * std::cos(angle) - values[at + 32] * std::sin(angle), found[at], 1e-12) << i;
      ASSERT_NEAR(values[at] * std::sin(angle) + values[at + 32] * std::cos(angle), found[at + 32], 1e-12) << i;
    }
}

TEST_P(layers, a_recorded_rotary_embedding_moves_with_its_tables) {
  const on_device x = place({1, 1}), y = place(doubles(2)), cos = place({2, 3}), sin = place({0, 10});
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  sg_rotary_desc desc = rotary(view(x, 1, 2), view(y, 1, 2));
  desc.cos = view(cos, 1, 1), desc.sin = view(sin, 1, 1);
  ASSERT_OK(sg_rotary_async(context_, &desc, &record, nullptr));
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_ROTARY, update.desc = &desc;
  desc.cos.data = cos.data + 1, desc.sin.data = sin.data + 1;
  ASSERT_OK(sg_graph_update(graph, 0, &update));
  job handle;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  expect_near({3 - 10, 10 + 3}, fetch(y, 2));
  desc.inverse = 1;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &update));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(),
                                 "operation->desc differs from submission 0 of the graph in its "
                                 "sizes, types, strides, memory or options"))
      << sg_last_error_message();
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(layers, are_recorded_in_a_graph_and_updated) {
  const on_device x = place({1, 3}), y = place({0, 0}), z = place({0, 0}), gamma = place({1, 5});
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  sg_norm_desc first = norm(view(x, 1, 2), view(y, 1, 2));
  first.epsilon = 0, first.gamma = gamma;
  sg_elementwise_desc second = function(SG_FUNCTION_RELU, view(y, 1, 2), view(z, 1, 2));
  ASSERT_OK(sg_norm_async(context_, &first, &record, nullptr));
  ASSERT_OK(sg_elementwise_async(context_, &second, &record, nullptr));
  const auto run = [&] {
    job handle;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  };
  run();
  expect_near({0, 5}, fetch(z, 2));
  const on_device other = place({7, 3});
  first.x.data = other;
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_NORM, update.desc = &first;
  ASSERT_OK(sg_graph_update(graph, 0, &update));
  run();
  expect_near({1, 0}, fetch(z, 2));
  const auto refused = [&](std::int32_t index, const char *part) {
    EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, index, &update));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message();
  };
  refused(1, "an elementwise function and not a norm");
  first.epsilon = 1;
  refused(0, "operation->desc differs from submission 0 of the graph in its sizes, types, strides, memory or options");
  first.epsilon = 0, first.gamma = nullptr;
  refused(0, "operation->desc differs from submission 0 of the graph in its sizes");
  update.desc = nullptr;
  refused(0, "operation->desc is NULL");
  update.operation = SG_OPERATION_ELEMENTWISE, update.desc = &second;
  second.function = SG_FUNCTION_TANH;
  refused(1, "operation->desc differs");
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(layers, statistics_name_the_operation) {
  const on_device x = place(doubles(12, 1.0));
  const auto statistics = [&](auto &&submit) {
    job handle;
    EXPECT_OK(submit(handle.out()));
    EXPECT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    sg_job_statistics found = SG_JOB_STATISTICS_INIT;
    EXPECT_OK(sg_job_get_statistics(handle, &found));
    EXPECT_LT(0, found.predicted_seconds);
    EXPECT_LT(0, found.bound_seconds);
    EXPECT_EQ(1, found.commands_run);
    return found;
  };
  sg_softmax_desc rows = softmax(view(x, 3, 4), view(x, 3, 4));
  rows.mask = SG_MASK_CAUSAL;
  const auto of_softmax = statistics([&](sg_job **out) { return sg_softmax_async(context_, &rows, nullptr, out); });
  EXPECT_STREQ("softmax causal", of_softmax.strategy);
  EXPECT_EQ(60, of_softmax.flops);
  const sg_elementwise_desc gelu = function(SG_FUNCTION_GELU_ERF, view(x, 3, 4), view(x, 3, 4));
  const auto of_gelu = statistics([&](sg_job **out) { return sg_elementwise_async(context_, &gelu, nullptr, out); });
  EXPECT_STREQ("gelu erf", of_gelu.strategy);
  const sg_rotary_desc turn = rotary(view(x, 3, 4), view(x, 3, 4));
  const auto of_turn = statistics([&](sg_job **out) { return sg_rotary_async(context_, &turn, nullptr, out); });
  EXPECT_STREQ("rotary", of_turn.strategy);
  EXPECT_EQ(36, of_turn.flops);
  const sg_norm_desc of = norm(view(x, 3, 4), view(x, 3, 4));
  EXPECT_STREQ("layer norm",
               statistics([&](sg_job **out) { return sg_norm_async(context_, &of, nullptr, out); }).strategy);
}

TEST_P(layers, empty_matrices_succeed) {
  const sg_elementwise_desc relu = function(SG_FUNCTION_RELU, view(nullptr, 0, 5), view(nullptr, 0, 5));
  const sg_softmax_desc rows = softmax(view(nullptr, 4, 0), view(nullptr, 4, 0));
  const sg_norm_desc of = norm(view(nullptr, 0, 0), view(nullptr, 0, 0));
  EXPECT_OK(sg_elementwise(context_, &relu, nullptr));
  EXPECT_OK(sg_softmax(context_, &rows, nullptr));
  EXPECT_OK(sg_norm(context_, &of, nullptr));
  for (const auto &[r, c] : {std::pair<int, int>{0, 4}, {4, 0}}) {
    const sg_rotary_desc turn = rotary(view(nullptr, r, c), view(nullptr, r, c));
    EXPECT_OK(sg_rotary(context_, &turn, nullptr));
  }
}

// One row, and one column, have both layouts.
TEST_P(layers, a_row_or_column_may_be_described_in_either_layout) {
  const doubles values = {0, 1, 3, 2};
  for (const bool is_row : {true, false})
    for (const int described : {0, 1, 2, 3}) {
      const on_device x = place(values), y = place(doubles(4));
      const auto as = [&](const on_device &memory, bool by_columns) {
        sg_matrix made = view(memory, is_row ? 1 : 4, is_row ? 4 : 1);
        made.layout = by_columns ? SG_LAYOUT_COLUMN_MAJOR : SG_LAYOUT_ROW_MAJOR;
        made.ld = 0;
        return made;
      };
      const sg_matrix from = as(x, (described & 1) != 0), to = as(y, (described & 2) != 0);
      sg_softmax_desc weights = softmax(from, to);
      ASSERT_OK(sg_softmax(context_, &weights, nullptr)) << is_row << described;
      EXPECT_NEAR(is_row ? std::exp(3.0) / (1 + std::exp(1.0) + std::exp(2.0) + std::exp(3.0)) : 1, fetch(y, 4)[2],
                  1e-12);
      const sg_elementwise_desc add = function(SG_FUNCTION_ADD, from, to, as(x, described == 1));
      ASSERT_OK(sg_elementwise(context_, &add, nullptr)) << is_row << described;
      EXPECT_EQ((doubles{0, 2, 6, 4}), fetch(y, 4));
      sg_axpby_desc twice = SG_AXPBY_DESC_INIT;
      twice.a = from, twice.c = to, twice.alpha = {3, 0}, twice.beta = {0, 0};
      ASSERT_OK(sg_axpby(context_, &twice, nullptr)) << is_row << described;
      EXPECT_EQ((doubles{0, 3, 9, 6}), fetch(y, 4));
    }
}

TEST_P(layers, wrong_calls_name_the_field) {
  const doubles before = {1, 2, 3, 4, 5, 6};
  const on_device a = place(before), c = place(before);
  const auto check = [&](sg_status wanted, const char *part, sg_status found) {
    EXPECT_STATUS(wanted, found);
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message();
  };
  const auto bad_function = [&](sg_status status, const char *part, auto &&spoil) {
    sg_elementwise_desc desc = function(SG_FUNCTION_ADD, view(a, 2, 2), view(c, 2, 2), view(a, 2, 2));
    spoil(desc);
    check(status, part, sg_elementwise(context_, &desc, nullptr));
  };
  using f = sg_elementwise_desc;
  bad_function(SG_STATUS_INVALID_ARGUMENT, "desc->function is 0", [](f &d) { d.function = sg_function(0); });
  bad_function(SG_STATUS_INVALID_ARGUMENT, "desc->function is 15", [](f &d) { d.function = sg_function(15); });
  bad_function(SG_STATUS_INVALID_ARGUMENT, "desc->a is 3 x 2", [](f &d) { d.a.rows = 3; });
  bad_function(SG_STATUS_INVALID_ARGUMENT, "desc->b is 2 x 1", [](f &d) { d.b.cols = 1; });
  bad_function(SG_STATUS_INVALID_ARGUMENT, "desc->c.ld is 1", [](f &d) { d.c.ld = 1; });
  bad_function(SG_STATUS_INVALID_ARGUMENT, "desc->b.dtype is f32", [](f &d) { d.b.dtype = SG_DTYPE_F32; });
  bad_function(SG_STATUS_UNSUPPORTED, "desc->c.dtype is c64",
               [](f &d) { d.a.dtype = d.b.dtype = d.c.dtype = SG_DTYPE_C64; });
  bad_function(SG_STATUS_INVALID_ARGUMENT, "desc->a.data is NULL", [](f &d) { d.a.data = nullptr; });
  bad_function(SG_STATUS_INVALID_ARGUMENT, "desc->reserved is 1", [](f &d) { d.reserved = 1; });
  bad_function(SG_STATUS_INVALID_ARGUMENT, "desc->struct_size", [](f &d) { d.struct_size = 8; });
  bad_function(SG_STATUS_INVALID_ARGUMENT, "overlap; they must be separate", [&](f &d) { d.a.data = c.data + 1; });
  bad_function(SG_STATUS_INVALID_ARGUMENT, "overlap; they must be separate", [&](f &d) { d.b = view(c, 2, 2, 3); });
  const auto bad_softmax = [&](sg_status status, const char *part, auto &&spoil) {
    sg_softmax_desc desc = softmax(view(a, 2, 2), view(c, 2, 2));
    spoil(desc);
    check(status, part, sg_softmax(context_, &desc, nullptr));
  };
  using s = sg_softmax_desc;
  bad_softmax(SG_STATUS_INVALID_ARGUMENT, "desc->mask is 2", [](s &d) { d.mask = sg_mask(2); });
  bad_softmax(SG_STATUS_INVALID_ARGUMENT, "desc->mask_offset is 1", [](s &d) { d.mask_offset = 1; });
  bad_softmax(SG_STATUS_INVALID_ARGUMENT, "desc->mask_offset is",
              [](s &d) { d.mask = SG_MASK_CAUSAL, d.mask_offset = INT64_MAX; });
  bad_softmax(SG_STATUS_INVALID_ARGUMENT, "desc->mask_rows is 1", [](s &d) { d.mask_rows = 1; });
  bad_softmax(SG_STATUS_INVALID_ARGUMENT, "desc->mask_rows is 3, which does not divide desc->x.rows, 2",
              [](s &d) { d.mask = SG_MASK_CAUSAL, d.mask_rows = 3; });
  bad_softmax(SG_STATUS_INVALID_ARGUMENT, "desc->reserved", [](s &d) { d.reserved = 1; });
  bad_softmax(SG_STATUS_INVALID_ARGUMENT, "desc->x is 2 x 1", [](s &d) { d.x.cols = 1; });
  bad_softmax(SG_STATUS_INVALID_ARGUMENT, "desc->x (", [&](s &d) { d.x.data = c.data + 2; });
  const auto bad_norm = [&](sg_status status, const char *part, auto &&spoil) {
    sg_norm_desc desc = norm(view(a, 2, 2), view(c, 2, 2));
    spoil(desc);
    check(status, part, sg_norm(context_, &desc, nullptr));
  };
  using n = sg_norm_desc;
  bad_norm(SG_STATUS_INVALID_ARGUMENT, "desc->kind is 2", [](n &d) { d.kind = sg_norm_kind(2); });
  bad_norm(SG_STATUS_INVALID_ARGUMENT, "desc->epsilon is -1", [](n &d) { d.epsilon = -1; });
  bad_norm(SG_STATUS_INVALID_ARGUMENT, "desc->epsilon is", [](n &d) { d.epsilon = NAN; });
  bad_norm(SG_STATUS_INVALID_ARGUMENT, "desc->beta", [&](n &d) { d.kind = SG_NORM_RMS, d.beta = a; });
  bad_norm(SG_STATUS_INVALID_ARGUMENT, "desc->gamma (", [&](n &d) { d.gamma = c.data + 1; });
  bad_norm(SG_STATUS_INVALID_ARGUMENT, "which is not aligned",
           [&](n &d) { d.gamma = reinterpret_cast<const char *>(a.data) + 4; });
  const auto bad_rotary = [&](sg_status status, const char *part, auto &&spoil) {
    sg_rotary_desc desc = rotary(view(a, 1, 4), view(c, 1, 4));
    desc.cos = desc.sin = view(a.data + 4, 1, 2);
    spoil(desc);
    check(status, part, sg_rotary(context_, &desc, nullptr));
  };
  using r = sg_rotary_desc;
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT;
  bad_rotary(invalid, "desc->head_size is 3; it must be a divisor of the 4 columns", [](r &d) { d.head_size = 3; });
  bad_rotary(invalid, "desc->head_size is -4", [](r &d) { d.head_size = -4; });
  bad_rotary(invalid, "desc->rotated_size is 3", [](r &d) { d.rotated_size = 3; });
  bad_rotary(invalid, "desc->rotated_size is 4", [](r &d) { d.head_size = 2, d.rotated_size = 4; });
  bad_rotary(invalid, "desc->first_position is -1", [](r &d) { d.first_position = -1; });
  bad_rotary(invalid, "desc->sequence_length is -1", [](r &d) { d.sequence_length = -1; });
  bad_rotary(invalid, "desc->theta is 0", [](r &d) { d.theta = 0; });
  bad_rotary(invalid, "desc->theta is inf", [](r &d) { d.theta = INFINITY; });
  bad_rotary(invalid, "desc->pairs is 2", [](r &d) { d.pairs = sg_rotary_pairs(2); });
  bad_rotary(invalid, "desc->inverse is 2", [](r &d) { d.inverse = 2; });
  bad_rotary(invalid, "desc->cos is 1 x 2; it must have 2 columns and at least 2 rows",
             [](r &d) { d.first_position = 1; });
  bad_rotary(invalid, "desc->sin is 1 x 1; it must have 2 columns", [](r &d) { d.sin.cols = 1; });
  bad_rotary(invalid, "give both or neither", [](r &d) { d.cos.data = nullptr; });
  bad_rotary(invalid, "desc->x is 1 x 2", [](r &d) { d.x.cols = 2; });
  bad_rotary(SG_STATUS_UNSUPPORTED, "desc->cos.dtype is f32; with desc->x of f64 it must be that",
             [](r &d) { d.cos.dtype = SG_DTYPE_F32; });
  bad_rotary(invalid, "desc->x (", [&](r &d) { d.x.data = c.data + 1; });
  bad_rotary(invalid, "desc->cos (", [&](r &d) { d.cos.data = c.data + 2; });
  bad_rotary(invalid, "desc->sin (", [&](r &d) { d.sin.data = c.data; });
  EXPECT_EQ(before, fetch(c, 6));
  const sg_softmax_desc none = softmax(view(a, 2, 2), view(c, 2, 2));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_softmax(context_, nullptr, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_HANDLE, sg_softmax(reinterpret_cast<sg_context *>(1), &none, nullptr));
}

// Operands in host memory need device memory for their copies, and those of the other layout for their transposes.
TEST(layers_in_little_memory, name_the_bytes_that_they_need) {
  sg_context_options little = SG_CONTEXT_OPTIONS_INIT;
  little.device = "sim:h200";
  little.memory_limit = 1 << 20;
  context limited;
  ASSERT_OK(sg_context_create(&little, limited.out()));
  doubles x(512 * 512), y(512 * 512);
  sg_softmax_desc desc = SG_SOFTMAX_DESC_INIT;
  desc.x = {x.data(), 512, 512, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  desc.y = {y.data(), 512, 512, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_softmax(limited, &desc, nullptr));
  EXPECT_NE(nullptr,
            std::strstr(sg_last_error_message(),
                        "the operands in host memory need 4194304 bytes of device memory; the limit is 1048576"))
      << sg_last_error_message();
  buffer memory;
  void *data = nullptr;
  ASSERT_OK(sg_buffer_create(limited, 4 << 20, nullptr, memory.out()));
  ASSERT_OK(sg_buffer_data(memory, &data));
  desc.x.data = data, desc.x.layout = SG_LAYOUT_COLUMN_MAJOR;
  desc.y.data = static_cast<double *>(data) + 512 * 512;
  EXPECT_STATUS(SG_STATUS_OUT_OF_MEMORY, sg_softmax(limited, &desc, nullptr));
  EXPECT_NE(nullptr,
            std::strstr(sg_last_error_message(), "the transposed operands need 2097152 bytes of device memory"))
      << sg_last_error_message();
  desc.x.rows = desc.x.cols = desc.y.rows = desc.y.cols = 100;
  EXPECT_OK(sg_softmax(limited, &desc, nullptr));
}

ON_EACH_DEVICE(layers);

}  // namespace
}  // namespace sg_test
