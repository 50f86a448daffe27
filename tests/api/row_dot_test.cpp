// SPDX-License-Identifier: Apache-2.0
// sg_row_dot: every type and layout, drawn shapes, special values, order, graphs, refused calls. The reference is in
// extended precision.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support/strided_matrix.hpp"

namespace sg_test {
namespace {

constexpr sg_dtype layer_types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};
constexpr long double infinite = std::numeric_limits<long double>::infinity();
const long double nan_value = std::numeric_limits<long double>::quiet_NaN();

class row_dot : public on_each_device {
 protected:
  using matrix = strided_matrix;
  static sg_row_dot_desc desc_of(const sg_matrix &a, const sg_matrix &b, const sg_matrix &y) {
    sg_row_dot_desc desc = SG_ROW_DOT_DESC_INIT;
    desc.a = a, desc.b = b, desc.y = y;
    return desc;
  }
  void fill(matrix &x) {
    for (std::int64_t i = 0; i < x.view.rows; ++i)
      for (std::int64_t j = 0; j < x.view.cols; ++j) x.set(i, j, random_.real());
    x.send();
  }
  static void expect_dots(matrix &a, matrix &b, matrix &y, const std::string &what) {
    const sg_dtype type = a.view.dtype;
    const long double arithmetic = std::ldexp(1.0L, type == SG_DTYPE_F64 ? -53 : -24);
    const long double stored = std::ldexp(1.0L, type == SG_DTYPE_BF16 ? -8 : type == SG_DTYPE_F16 ? -11 : -24);
    const std::vector<std::uint8_t> before = y.gaps();
    y.fetch();
    ASSERT_EQ(before, y.gaps()) << what << ": a byte beside the result was written";
    for (std::int64_t i = 0; i < a.view.rows; ++i) {
      long double sum = 0, magnitude = 0;
      for (std::int64_t j = 0; j < a.view.cols; ++j) {
        const long double product = a.get(i, j) * b.get(i, j);
        sum += product, magnitude += std::fabs(product);
      }
      const long double rounding = type == SG_DTYPE_F64 ? 0 : stored * std::fabs(sum) + std::ldexp(1.0L, -25);
      ASSERT_LE(std::fabs(y.get(i, 0) - sum), 64 * arithmetic * magnitude + rounding)
          << what << ", row " << i << ": " << double(y.get(i, 0)) << " instead of " << double(sum);
    }
  }

  random_source random_{9};
};

// Thin, empty and long shapes; gaps; addresses behind aligned ones; parts for several workers.
TEST_P(row_dot, drawn_shapes) {
  const auto below = [this](std::int64_t n) { return std::int64_t(random_.below(int(n))); };
  for (int attempt = 0; attempt < 120; ++attempt) {
    const sg_dtype type = layer_types[below(4)];
    const std::int64_t most[] = {2, 9, 70, 700};
    std::int64_t rows = below(most[below(4)]), cols = below(most[below(4)]);
    if (attempt % 60 == 0) rows = 1, cols = 5000 + below(9000);
    if (attempt % 60 == 1) rows = 5000 + below(9000), cols = 1 + below(4);
    const matrix::form how = {below(2) ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR, below(2) ? below(20) : 0,
                              below(2) ? below(9) : 0};
    matrix::form other = how, of_y = how;
    other.gap = below(2) * 8, other.offset = below(9);
    of_y.layout = below(2) ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR, of_y.gap = below(2) * below(5);
    if (rows <= 1 || cols <= 1) other = how;  // without gaps they would have both layouts
    matrix a(context_, type, rows, cols, how), b(context_, type, rows, cols, other), y(context_, type, rows, 1, of_y);
    fill(a), fill(b), y.send();
    const bool squares = below(4) == 0;
    const sg_row_dot_desc desc = desc_of(a.view, squares ? a.view : b.view, y.view);
    const std::string what = std::string(sg_dtype_name(type)) + " " + std::to_string(rows) + " x " +
                             std::to_string(cols) + (how.layout == SG_LAYOUT_ROW_MAJOR ? " by rows" : " by columns");
    ASSERT_OK(sg_row_dot(context_, &desc, nullptr)) << what;
    expect_dots(a, squares ? a : b, y, what);
  }
}

// Without columns the operands need no memory.
TEST_P(row_dot, sums_of_nothing_are_zero) {
  for (const sg_dtype type : layer_types) {
    matrix y(context_, type, 3, 1, {});
    y.send();
    const sg_matrix none = {nullptr, 3, 0, 0, type, SG_LAYOUT_ROW_MAJOR};
    const sg_row_dot_desc desc = desc_of(none, none, y.view);
    ASSERT_OK(sg_row_dot(context_, &desc, nullptr));
    y.fetch();
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(0, y.get(i, 0));
  }
}

TEST_P(row_dot, special_values) {
  for (const sg_dtype type : layer_types)
    for (const std::int64_t cols : {2, 40})
      for (const sg_layout layout : {SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR}) {
        const long double large = type == SG_DTYPE_F16 ? 60000 : type == SG_DTYPE_F64 ? 1.7e308L : 3e38L;
        const long double rows[][5] = {{nan_value, 1, 1, 1, nan_value},        {infinite, 0, 1, 1, nan_value},
                                       {infinite, 2, 1, 1, infinite},          {-infinite, 2, 1, 1, -infinite},
                                       {infinite, 1, -infinite, 1, nan_value}, {large, 2, 1, 1, infinite},
                                       {1, 1, infinite, -1, -infinite}};
        matrix a(context_, type, std::size(rows), cols, {layout}), b(context_, type, std::size(rows), cols, {layout}),
            y(context_, type, std::size(rows), 1, {});
        for (std::int64_t i = 0; i < std::int64_t(std::size(rows)); ++i)
          for (std::int64_t j = 0; j < cols; ++j) {
            const bool last = j == cols - 1;
            a.set(i, j, j == 0 ? rows[i][0] : last ? rows[i][2] : 0.5L);
            b.set(i, j, j == 0 ? rows[i][1] : last ? rows[i][3] : 0.5L);
          }
        a.send(), b.send(), y.send();
        const sg_row_dot_desc desc = desc_of(a.view, b.view, y.view);
        ASSERT_OK(sg_row_dot(context_, &desc, nullptr));
        y.fetch();
        for (std::int64_t i = 0; i < std::int64_t(std::size(rows)); ++i) {
          const long double wanted = rows[i][4], found = y.get(i, 0);
          EXPECT_TRUE(std::isnan(wanted) ? std::isnan(found) : found == wanted)
              << sg_dtype_name(type) << " " << cols << " columns, row " << i << ": " << double(found);
        }
      }
}

TEST_P(row_dot, follows_the_jobs_of_its_operands_and_is_recorded) {
  matrix a(context_, SG_DTYPE_F32, 2, 2, {}), b(context_, SG_DTYPE_F32, 2, 2, {}), y(context_, SG_DTYPE_F32, 2, 1, {}),
      z(context_, SG_DTYPE_F32, 2, 1, {});
  for (const auto &[i, j, of_a, of_b] : {std::array{0, 0, 1, 5}, {0, 1, 2, 6}, {1, 0, 3, 7}, {1, 1, 4, 8}})
    a.set(i, j, of_a), b.set(i, j, of_b);
  a.send(), b.send(), y.send(), z.send();
  owned<sg_graph, sg_graph_release> graph;
  ASSERT_OK(sg_graph_create(context_, graph.out()));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  const sg_row_dot_desc first = desc_of(a.view, b.view, y.view);
  sg_row_dot_desc second = desc_of(y.view, y.view, z.view);
  for (const sg_submit *submit : {static_cast<const sg_submit *>(nullptr), static_cast<const sg_submit *>(&record)}) {
    ASSERT_OK(sg_row_dot_async(context_, &first, submit, nullptr));
    ASSERT_OK(sg_row_dot_async(context_, &second, submit, nullptr));
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  z.fetch();
  EXPECT_EQ(17 * 17, z.get(0, 0));
  EXPECT_EQ(53 * 53, z.get(1, 0));
  matrix other(context_, SG_DTYPE_F32, 2, 1, {});
  other.set(0, 0, 2), other.set(1, 0, -1), other.send();
  second.b = other.view;
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_ROW_DOT, update.desc = &second;
  ASSERT_OK(sg_graph_update(graph, 1, &update));
  job run;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, run.out()));
  ASSERT_OK(sg_job_wait(run, SG_FOREVER, nullptr));
  z.fetch();
  EXPECT_EQ(2 * 17, z.get(0, 0));
  EXPECT_EQ(-53, z.get(1, 0));
  sg_row_dot_desc wider = first;
  update.desc = &wider;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 1, &update));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(),
                                 "it is row dot of 2 x 2, f32, and was recorded as row dot of 1 x 2, f32"))
      << sg_last_error_message();
  update.desc = &first;
  job handle;
  ASSERT_OK(sg_run_async(context_, &update, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(handle, &statistics));
  EXPECT_STREQ("row dot", statistics.strategy);
  EXPECT_EQ(8, statistics.flops);
}

// On cores a wide matrix is shared by its operands' bytes, although the result is small.
TEST_P(row_dot, is_split_by_its_operands) {
  if (std::string(GetParam()) != "cpu") GTEST_SKIP() << "lanes of other devices are no cores";
  const context two = open_context("cpu", 2);
  matrix a(two, SG_DTYPE_F32, 64, 20'000, {}), y(two, SG_DTYPE_F32, 64, 1, {});
  fill(a), y.send();
  const sg_row_dot_desc desc = desc_of(a.view, a.view, y.view);
  job handle;
  ASSERT_OK(sg_row_dot_async(two, &desc, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(handle, &statistics));
  EXPECT_STREQ("row dot x2", statistics.strategy);
  expect_dots(a, a, y, "split");
}

TEST_P(row_dot, wrong_calls_name_the_field) {
  const matrix a(context_, SG_DTYPE_F32, 2, 3, {}), b(context_, SG_DTYPE_F32, 2, 3, {}),
      y(context_, SG_DTYPE_F32, 2, 1, {});
  const auto refused = [&](sg_status status, const char *text, auto &&spoil) {
    sg_row_dot_desc desc = desc_of(a.view, b.view, y.view);
    spoil(desc);
    EXPECT_STATUS(status, sg_row_dot(context_, &desc, nullptr)) << text;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message();
  };
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT, unsupported = SG_STATUS_UNSUPPORTED;
  refused(invalid, "desc->b is 2 x 2", [](sg_row_dot_desc &d) { d.b.cols = 2; });
  refused(invalid, "desc->y is 2 x 3; with desc->a of 2 x 3 it must be 2 x 1",
          [](sg_row_dot_desc &d) { d.y.cols = 3, d.y.ld = 3; });
  refused(invalid, "desc->b.dtype is f64", [](sg_row_dot_desc &d) { d.b.dtype = SG_DTYPE_F64; });
  refused(invalid, "desc->y.dtype is f64 and desc->a.dtype is f32",
          [](sg_row_dot_desc &d) { d.y.dtype = SG_DTYPE_F64; });
  refused(invalid, "desc->y.data is NULL", [](sg_row_dot_desc &d) { d.y.data = nullptr; });
  refused(invalid, "desc->a.data is NULL", [](sg_row_dot_desc &d) { d.a.data = nullptr; });
  refused(invalid, "desc->a.ld is 2", [](sg_row_dot_desc &d) { d.a.ld = 2; });
  refused(invalid, "overlap", [](sg_row_dot_desc &d) { d.y.data = d.a.data; });
  refused(invalid, "overlap", [](sg_row_dot_desc &d) { d.y.data = static_cast<float *>(d.b.data) + 2; });
  refused(unsupported, "desc->a.dtype is c64",
          [](sg_row_dot_desc &d) { d.a.dtype = d.b.dtype = d.y.dtype = SG_DTYPE_C64; });
}

ON_EACH_DEVICE(row_dot);

}  // namespace
}  // namespace sg_test
