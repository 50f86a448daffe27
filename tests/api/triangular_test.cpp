// SPDX-License-Identifier: Apache-2.0
// sg_triangular: every type, side and layout, alpha of 0, graphs, parts on cores, refused calls. The reference is in
// extended precision; the unused triangle holds NaN.
#include <cmath>
#include <cstring>
#include <string>

#include "support/dense.hpp"

namespace sg_test {
namespace {

class triangular : public on_each_device {
 protected:
  using matrix = strided_matrix;
  // Well conditioned; what is not used is NaN.
  void fill_factor(matrix &a, const sg_triangular_desc &d) {
    const std::int64_t n = a.view.rows;
    const long double nan = std::numeric_limits<long double>::quiet_NaN();
    fill(a, random_);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        a.set_number(i, j, i == j ? a.get_number(i, i) / 4.0L + 2.0L : a.get_number(i, j) / (long double)(n));
    spoil_outside(a, d.triangle);
    for (std::int64_t i = 0; i < n && d.diagonal == SG_DIAGONAL_UNIT; ++i) a.set_number(i, i, {nan, nan});
  }
  // Runs it, and compares B with what the definition says, and its gaps with themselves.
  void expect_result(matrix &a, matrix &b, sg_triangular_desc d, const std::string &what) {
    d.a = a.view, d.b = b.view;
    const std::vector<std::uint8_t> before = b.gaps();
    const dense given = dense_of(b);
    ASSERT_OK(sg_triangular(context_, &d, nullptr)) << what;
    b.fetch();
    ASSERT_EQ(before, b.gaps()) << what << ": a byte beside the result was written";
    const sg_dtype type = b.view.dtype;
    const number alpha = factor_of(d.alpha, type);
    const dense factor = after(of_triangle(dense_of(a), d.triangle, d.diagonal), d.op_a), found = dense_of(b);
    const bool solves = d.kind == SG_TRIANGULAR_SOLVE;
    sg_reference::sum_of_products wanted(given.rows, given.cols);
    if (solves)
      wanted = residual_of_solve(factor, d.side, found, alpha, given);
    else
      d.side == SG_SIDE_LEFT ? wanted.add(alpha, factor, given) : wanted.add(alpha, given, factor);
    for (std::int64_t i = 0; i < given.rows; ++i)
      for (std::int64_t j = 0; j < given.cols; ++j)
        ASSERT_LE(std::abs(wanted.value.at(i, j) - (solves ? number(0) : found.at(i, j))),
                  wanted.error(i, j, factor.rows, rounding_of(type)))
            << what << " at " << i << ", " << j;
  }

  // Of any form.
  void run_drawn(sg_dtype type, std::int64_t rows, std::int64_t cols) {
    const auto below = [this](int n) { return std::int64_t(random_.below(n)); };
    sg_triangular_desc d = SG_TRIANGULAR_DESC_INIT;
    d.kind = sg_triangular_kind(below(2)), d.side = sg_side(below(2)), d.triangle = sg_triangle(below(2));
    d.op_a = sg_transpose(below(3)), d.diagonal = sg_diagonal(below(2)), d.alpha = {random_.real(), random_.real()};
    matrix::form of_b = {sg_layout(below(2)), below(2) * below(9), below(9)}, of_a = of_b;
    of_a.gap = below(2) * 3, of_a.offset = below(5);
    if (!is_complex(type) || d.op_a != SG_TRANSPOSE_C) of_a.layout = sg_layout(below(2));
    const std::int64_t order = d.side == SG_SIDE_LEFT ? rows : cols;
    matrix a(context_, type, order, order, of_a), b(context_, type, rows, cols, of_b);
    fill_factor(a, d), fill(b, random_);
    a.send(), b.send();
    expect_result(a, b, d,
                  std::string(sg_dtype_name(type)) + " " + std::to_string(rows) + " x " + std::to_string(cols) +
                      " kind " + std::to_string(d.kind) + " side " + std::to_string(d.side) + " triangle " +
                      std::to_string(d.triangle) + " op " + std::to_string(d.op_a) + " diagonal " +
                      std::to_string(d.diagonal) + " layouts " + std::to_string(of_a.layout) +
                      std::to_string(of_b.layout));
  }

  random_source random_{11};
};

TEST_P(triangular, drawn_forms) {
  const auto below = [this](int n) { return std::int64_t(random_.below(n)); };
  for (int attempt = 0; attempt < 150; ++attempt) {
    const int most[] = {2, 9, 60};
    const std::int64_t rows = below(most[below(3)]), cols = below(most[below(3)]);
    run_drawn(blas_types[below(4)], rows, cols);
    if (HasFatalFailure()) return;
  }
}

TEST_P(triangular, operands_larger_than_the_device_memory) {
  for (const sg_dtype type : blas_types) {
    context_ = context_of_elements(GetParam(), type, 2600);
    for (int attempt = 0; attempt < 6; ++attempt) {
      const std::int64_t rows = 52 + random_.below(29), cols = 52 + random_.below(29);
      run_drawn(type, rows, cols);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(triangular, alpha_of_zero_reads_nothing) {
  for (const sg_dtype type : blas_types) {
    matrix b(context_, type, 3, 2, {SG_LAYOUT_ROW_MAJOR, 2});
    for (std::int64_t i = 0; i < 6; ++i) b.set(i / 2, i % 2, std::numeric_limits<long double>::quiet_NaN());
    b.send();
    sg_triangular_desc d = SG_TRIANGULAR_DESC_INIT;
    d.a = {nullptr, 3, 3, 0, type, SG_LAYOUT_ROW_MAJOR}, d.b = b.view, d.alpha = {0, 0};
    ASSERT_OK(sg_triangular(context_, &d, nullptr));
    b.fetch();
    for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(number(0), b.get_number(i / 2, i % 2));
  }
}

TEST_P(triangular, a_zero_on_the_diagonal_gives_no_error) {
  matrix a(context_, SG_DTYPE_F64, 1, 1, {}), b(context_, SG_DTYPE_F64, 1, 1, {});
  a.set(0, 0, 0), b.set(0, 0, 3), a.send(), b.send();
  sg_triangular_desc d = SG_TRIANGULAR_DESC_INIT;
  d.a = a.view, d.b = b.view;
  ASSERT_OK(sg_triangular(context_, &d, nullptr));
  b.fetch();
  EXPECT_FALSE(std::isfinite(b.get(0, 0)));
}

// A product, and the solve that undoes it; alpha may become 0.
TEST_P(triangular, is_recorded_and_updated) {
  matrix a(context_, SG_DTYPE_F64, 2, 2, {}), b(context_, SG_DTYPE_F64, 2, 1, {});
  a.set(0, 0, 2), a.set(1, 0, 3), a.set(1, 1, 4), b.set(0, 0, 5), b.set(1, 0, 6);
  a.send(), b.send();
  owned<sg_graph, sg_graph_release> graph;
  ASSERT_OK(sg_graph_create(context_, graph.out()));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  sg_triangular_desc product = SG_TRIANGULAR_DESC_INIT;
  product.a = a.view, product.b = b.view, product.kind = SG_TRIANGULAR_MULTIPLY;
  sg_triangular_desc solve = product;
  solve.kind = SG_TRIANGULAR_SOLVE, solve.alpha = {3, 0};
  ASSERT_OK(sg_triangular_async(context_, &product, &record, nullptr));
  ASSERT_OK(sg_triangular_async(context_, &solve, &record, nullptr));
  const auto run = [&] {
    job handle;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    b.fetch();
  };
  run();
  EXPECT_EQ(15, b.get(0, 0));
  EXPECT_EQ(18, b.get(1, 0));
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_TRIANGULAR, update.desc = &solve;
  solve.alpha = {-1, 0};
  ASSERT_OK(sg_graph_update(graph, 1, &update));
  run();
  EXPECT_EQ(-15, b.get(0, 0));
  solve.side = SG_SIDE_RIGHT;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 1, &update));
  update.desc = &product;
  job handle;
  ASSERT_OK(sg_run_async(context_, &update, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  b.fetch();
  EXPECT_EQ(-30, b.get(0, 0));
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(handle, &statistics));
  EXPECT_STREQ("triangular product", statistics.strategy);
  EXPECT_EQ(4, statistics.flops);
}

TEST_P(triangular, is_split_between_columns_on_cores) {
  if (std::string(GetParam()) != "cpu") GTEST_SKIP() << "lanes of other devices are no cores";
  const context two = open_context("cpu", 2);
  for (const sg_side side : {SG_SIDE_LEFT, SG_SIDE_RIGHT}) {
    sg_triangular_desc d = SG_TRIANGULAR_DESC_INIT;
    d.side = side;
    const std::int64_t rows = side == SG_SIDE_LEFT ? 6 : 20'000, cols = side == SG_SIDE_LEFT ? 20'000 : 6;
    matrix a(two, SG_DTYPE_F64, 6, 6, {}), b(two, SG_DTYPE_F64, rows, cols, {});
    fill_factor(a, d), fill(b, random_);
    a.send(), b.send();
    d.a = a.view, d.b = b.view;
    job handle;
    ASSERT_OK(sg_triangular_async(two, &d, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(handle, &statistics));
    EXPECT_STREQ("triangular solve x2", statistics.strategy);
    b.send();
    expect_result(a, b, d, "split");
  }
}

// Host workers copy triangles, of pinned matrices, too: small ones cross the link sooner as rectangles. The other
// triangle of B's factor may be read, that of a result may not.
TEST(triangles_in_pinned_memory, are_copied_as_rectangles_where_that_is_faster) {
  const context context = open_context("sim:h200");
  const auto predicted = [&](sg_operation operation, const void *desc, sg_memory_kind place) {
    const sg_operation_desc what = {sizeof what, operation, 1, desc};
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    options.place = place;
    plan made;
    sg_plan_prediction found = SG_PLAN_PREDICTION_INIT;
    EXPECT_OK(sg_plan_create(context, &what, &options, made.out()));
    EXPECT_OK(sg_plan_get_prediction(made, &found));
    return found;
  };
  for (const std::int64_t n : {200, 500, 8000}) {
    const sg_matrix square = {nullptr, n, n, 0, SG_DTYPE_F64, SG_LAYOUT_COLUMN_MAJOR};
    const std::uint64_t bytes = std::uint64_t(n) * std::uint64_t(n) * sizeof(double);
    sg_triangular_desc solve = SG_TRIANGULAR_DESC_INIT;
    solve.a = solve.b = square;
    sg_symmetric_desc product = SG_SYMMETRIC_DESC_INIT;
    product.a = product.b = product.c = square;
    sg_rank_k_desc update = SG_RANK_K_DESC_INIT;
    update.a = update.c = square;
    for (const auto &[operation, desc] :
         {std::pair<sg_operation, const void *>{SG_OPERATION_TRIANGULAR, &solve}, {SG_OPERATION_SYMMETRIC, &product}}) {
      const sg_plan_prediction pinned = predicted(operation, desc, SG_MEMORY_PINNED);
      if (n < 8000) {
        EXPECT_EQ(0u, pinned.staging_bytes) << n;
        EXPECT_EQ(2 * bytes, pinned.bytes_in) << n;
        EXPECT_GT(predicted(operation, desc, SG_MEMORY_PAGEABLE).staging_bytes, 0u) << n;
      } else {
        EXPECT_LT(pinned.bytes_in, 2 * bytes - bytes / 8) << n;
      }
    }
    EXPECT_GT(predicted(SG_OPERATION_RANK_K, &update, SG_MEMORY_PINNED).staging_bytes, 0u) << n;
  }
}

TEST_P(triangular, pinned_and_pageable_operands_give_the_same) {
  constexpr int n = 90;
  void *pinned = nullptr;
  ASSERT_OK(sg_host_alloc(context_, 2 * n * n * sizeof(double), &pinned));
  auto *const factor = static_cast<double *>(pinned), *const right = factor + n * n;
  for (const sg_triangular_kind kind : {SG_TRIANGULAR_SOLVE, SG_TRIANGULAR_MULTIPLY}) {
    std::vector<double> a(n * n), b(n * n);
    for (int i = 0; i < n * n; ++i) {
      const int row = i % n, col = i / n;
      a[i] = row < col ? std::numeric_limits<double>::quiet_NaN() : row == col ? 2.0 : random_.real() / n;
      b[i] = random_.real();
    }
    std::copy(a.begin(), a.end(), factor);
    std::copy(b.begin(), b.end(), right);
    sg_triangular_desc d = SG_TRIANGULAR_DESC_INIT;
    d.kind = kind;
    d.a = {a.data(), n, n, 0, SG_DTYPE_F64, SG_LAYOUT_COLUMN_MAJOR}, d.b = d.a, d.b.data = b.data();
    EXPECT_OK(sg_triangular(context_, &d, nullptr));
    d.a.data = factor, d.b.data = right;
    EXPECT_OK(sg_triangular(context_, &d, nullptr));
    EXPECT_EQ(b, std::vector<double>(right, right + n * n));
    EXPECT_FALSE(std::isnan(b.back()));
  }
  EXPECT_OK(sg_host_free(context_, pinned));
}

TEST_P(triangular, wrong_calls_name_the_field) {
  const matrix a(context_, SG_DTYPE_F32, 2, 2, {}), b(context_, SG_DTYPE_F32, 2, 3, {});
  const auto refused = [&](sg_status status, const char *text, auto &&spoil) {
    sg_triangular_desc d = SG_TRIANGULAR_DESC_INIT;
    d.a = a.view, d.b = b.view;
    spoil(d);
    EXPECT_STATUS(status, sg_triangular(context_, &d, nullptr)) << text;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message();
  };
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT, unsupported = SG_STATUS_UNSUPPORTED;
  using desc = sg_triangular_desc;
  refused(invalid, "desc->kind is 2, which is no kind", [](desc &d) { d.kind = sg_triangular_kind(2); });
  refused(invalid, "desc->side is 7, which is no side", [](desc &d) { d.side = sg_side(7); });
  refused(invalid, "desc->triangle is 2, which is no triangle", [](desc &d) { d.triangle = sg_triangle(2); });
  refused(invalid, "desc->diagonal is 3", [](desc &d) { d.diagonal = sg_diagonal(3); });
  refused(invalid, "desc->op_a is 4, which is no op", [](desc &d) { d.op_a = sg_transpose(4); });
  refused(invalid, "desc->reserved is 1", [](desc &d) { d.reserved = 1; });
  refused(invalid, "desc->a is 2 x 2; with desc->b of 2 x 3 it must be 3 x 3", [](desc &d) { d.side = SG_SIDE_RIGHT; });
  refused(invalid, "desc->a is 2 x 1", [](desc &d) { d.a.cols = 1; });
  refused(invalid, "desc->a.dtype is f64 and desc->b.dtype is f32", [](desc &d) { d.a.dtype = SG_DTYPE_F64; });
  refused(unsupported, "desc->b.dtype is f16; it must be f64, f32, c64 or c128",
          [](desc &d) { d.a.dtype = d.b.dtype = SG_DTYPE_F16; });
  refused(unsupported, "desc->op_a is C", [](desc &d) {
    d.a.dtype = d.b.dtype = SG_DTYPE_C64, d.op_a = SG_TRANSPOSE_C, d.a.layout = SG_LAYOUT_COLUMN_MAJOR;
  });
  refused(invalid, "desc->alpha.re is 1e+300", [](desc &d) { d.alpha.re = 1e300; });
  refused(invalid, "desc->a.data is NULL", [](desc &d) { d.a.data = nullptr; });
  refused(invalid, "desc->b.data is NULL", [](desc &d) { d.b.data = nullptr; });
  refused(invalid, "desc->b.ld is 2", [](desc &d) { d.b.ld = 2; });
  refused(invalid, "overlap", [](desc &d) { d.a.data = d.b.data; });
}

ON_EACH_DEVICE(triangular);

}  // namespace
}  // namespace sg_test
