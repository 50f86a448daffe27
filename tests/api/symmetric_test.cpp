// SPDX-License-Identifier: Apache-2.0
// sg_symmetric and sg_rank_k: every type, triangle and layout, scalars of 0, graphs, refused calls. The reference is in
// extended precision; unused triangles hold NaN, and that of a result keeps its bytes in every memory.
#include <cstring>
#include <string>

#include "support/dense.hpp"

namespace sg_test {
namespace {

class symmetric : public on_each_device {
 protected:
  using matrix = strided_matrix;
  std::int64_t below(int n) { return random_.below(n); }
  matrix::form drawn_form(sg_layout layout) { return {layout, below(2) * below(9), below(9)}; }

  // Compares C with a sum in one part of it, and all other bytes with those before.
  void expect(matrix &c, const std::vector<std::uint8_t> &bytes_before, const sg_reference::sum_of_products &wanted,
              std::int64_t terms, const sg_triangle *triangle, const std::string &what) {
    c.fetch();
    const dense found = dense_of(c);
    const sg_dtype type = c.view.dtype;
    for (std::int64_t i = 0; i < found.rows; ++i)
      for (std::int64_t j = 0; j < found.cols; ++j) {
        if (triangle && !sg_reference::is_within(*triangle, i, j)) continue;
        ASSERT_LE(std::abs(found.at(i, j) - wanted.value.at(i, j)), wanted.error(i, j, terms, rounding_of(type)))
            << what << " at " << i << ", " << j;
      }
    EXPECT_EQ(bytes_before, untouched(c, triangle)) << what << ": a byte that is none of the result was written";
  }
  // All bytes but those of the result.
  std::vector<std::uint8_t> untouched(matrix &c, const sg_triangle *triangle) {
    if (!triangle) return c.gaps();
    const std::vector<std::uint8_t> all = c.bytes();
    const dense now = dense_of(c);
    for (std::int64_t i = 0; i < now.rows; ++i)
      for (std::int64_t j = 0; j < now.cols; ++j)
        if (sg_reference::is_within(*triangle, i, j)) c.set_number(i, j, 77);
    std::vector<std::uint8_t> rest = c.bytes();
    for (std::int64_t i = 0; i < now.rows; ++i)
      for (std::int64_t j = 0; j < now.cols; ++j)
        if (sg_reference::is_within(*triangle, i, j)) c.set_number(i, j, now.at(i, j));
    EXPECT_EQ(all, c.bytes());
    return rest;
  }
  sg_rank_k_desc drawn_update(sg_dtype type) {
    sg_rank_k_desc d = SG_RANK_K_DESC_INIT;
    d.triangle = sg_triangle(below(2)), d.symmetry = sg_symmetry(below(2));
    const bool is_hermitian = is_complex(type) && d.symmetry == SG_SYMMETRY_HERMITIAN;
    const sg_transpose transposed = !is_complex(type) ? sg_transpose(1 + below(2))
                                    : is_hermitian    ? SG_TRANSPOSE_C
                                                      : SG_TRANSPOSE_T;
    d.op_a = below(2) ? SG_TRANSPOSE_N : transposed;
    d.alpha = {random_.real(), random_.real()};
    d.beta = below(3) ? sg_scalar{random_.real(), is_hermitian ? 0 : random_.real()} : sg_scalar{0, 0};
    return d;
  }
  void run_drawn_product(sg_dtype type, std::int64_t rows, std::int64_t cols);
  void run_update(sg_rank_k_desc d, sg_dtype type, std::int64_t n, std::int64_t k, bool has_b);

  random_source random_{12};
};

void symmetric::run_drawn_product(sg_dtype type, std::int64_t rows, std::int64_t cols) {
  sg_symmetric_desc d = SG_SYMMETRIC_DESC_INIT;
  d.side = sg_side(below(2)), d.triangle = sg_triangle(below(2)), d.symmetry = sg_symmetry(below(2));
  d.alpha = {random_.real(), random_.real()};
  if (below(3)) d.beta = {random_.real(), random_.real()};
  const bool is_hermitian = is_complex(type) && d.symmetry == SG_SYMMETRY_HERMITIAN;
  const sg_layout layout = sg_layout(below(2)), other = sg_layout(below(2));
  const std::int64_t order = d.side == SG_SIDE_LEFT ? rows : cols;
  matrix a(context_, type, order, order, drawn_form(is_hermitian ? layout : sg_layout(below(2)))),
      b(context_, type, rows, cols, drawn_form(is_complex(type) ? layout : other)),
      c(context_, type, rows, cols, drawn_form(layout));
  fill(a, random_), fill(b, random_), fill(c, random_);
  spoil_outside(a, d.triangle);
  a.send(), b.send(), c.send();
  d.a = a.view, d.b = b.view, d.c = c.view;
  sg_reference::sum_of_products wanted(rows, cols);
  const dense s = of_symmetric(dense_of(a), d.triangle, is_hermitian);
  const number alpha = factor_of(d.alpha, type);
  d.side == SG_SIDE_LEFT ? wanted.add(alpha, s, dense_of(b)) : wanted.add(alpha, dense_of(b), s);
  wanted.add(factor_of(d.beta, type), dense_of(c));
  const std::vector<std::uint8_t> before = c.gaps();
  ASSERT_OK(sg_symmetric(context_, &d, nullptr));
  expect(c, before, wanted, order, nullptr,
         std::string(sg_dtype_name(type)) + " " + std::to_string(rows) + " x " + std::to_string(cols) + " side " +
             std::to_string(d.side) + " triangle " + std::to_string(d.triangle) + " symmetry " +
             std::to_string(d.symmetry));
}

TEST_P(symmetric, drawn_products) {
  for (int attempt = 0; attempt < 120; ++attempt) {
    const int most[] = {2, 9, 60};
    const std::int64_t rows = below(most[below(3)]), cols = below(most[below(3)]);
    run_drawn_product(blas_types[below(4)], rows, cols);
    if (HasFatalFailure()) return;
  }
}

void symmetric::run_update(sg_rank_k_desc d, sg_dtype type, std::int64_t n, std::int64_t k, bool has_b) {
  const bool is_hermitian = is_complex(type) && d.symmetry == SG_SYMMETRY_HERMITIAN;
  if (is_hermitian && !has_b) d.alpha.im = 0;
  const sg_layout of_c = sg_layout(below(2)), of_a = is_hermitian ? of_c : sg_layout(below(2));
  const std::int64_t rows = d.op_a == SG_TRANSPOSE_N ? n : k, cols = d.op_a == SG_TRANSPOSE_N ? k : n;
  matrix a(context_, type, rows, cols, drawn_form(of_a)), b(context_, type, rows, cols, drawn_form(of_a)),
      c(context_, type, n, n, drawn_form(of_c));
  fill(a, random_), fill(b, random_), fill(c, random_);
  for (std::int64_t i = 0; i < n && is_hermitian; ++i) c.set_number(i, i, c.get_number(i, i).real());
  if (d.beta.re == 0 && d.beta.im == 0)
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) c.set(i, j, std::numeric_limits<long double>::quiet_NaN());
  spoil_outside(c, d.triangle);
  a.send(), b.send(), c.send();
  d.a = a.view, d.c = c.view;
  if (has_b) d.b = b.view;
  sg_reference::sum_of_products wanted(n, n);
  const sg_transpose primed = is_hermitian ? SG_TRANSPOSE_C : SG_TRANSPOSE_T;
  const number alpha = factor_of(d.alpha, type), beta = factor_of(d.beta, type);
  const dense x = after(dense_of(a), d.op_a), y = has_b ? after(dense_of(b), d.op_a) : x;
  wanted.add(alpha, x, after(y, primed));
  if (has_b) wanted.add(is_hermitian ? std::conj(alpha) : alpha, y, after(x, primed));
  if (beta != number(0)) wanted.add(beta, dense_of(c));
  const std::vector<std::uint8_t> before = untouched(c, &d.triangle);
  ASSERT_OK(sg_rank_k(context_, &d, nullptr));
  expect(c, before, wanted, 2 * k, &d.triangle,
         std::string(sg_dtype_name(type)) + " n " + std::to_string(n) + " k " + std::to_string(k) + " triangle " +
             std::to_string(d.triangle) + " symmetry " + std::to_string(d.symmetry) + " op " + std::to_string(d.op_a) +
             " layouts " + std::to_string(of_a) + std::to_string(of_c) + (has_b ? " with B" : ""));
}

TEST_P(symmetric, drawn_updates) {
  for (int attempt = 0; attempt < 150; ++attempt) {
    const sg_dtype type = blas_types[below(4)];
    const int most[] = {2, 9, 60};
    const std::int64_t n = below(most[below(3)]), k = below(most[below(3)]);
    run_update(drawn_update(type), type, n, k, below(2));
    if (HasFatalFailure()) return;
  }
}

TEST_P(symmetric, operands_larger_than_the_device_memory) {
  for (const sg_dtype type : blas_types) {
    context_ = context_of_elements(GetParam(), type, 2600);
    for (int attempt = 0; attempt < 3; ++attempt) {
      const std::int64_t rows = 52 + below(39), cols = 52 + below(39);
      run_drawn_product(type, rows, cols);
      run_update(drawn_update(type), type, rows, below(2) ? cols : below(20), below(2));
      if (HasFatalFailure()) return;
    }
  }
}

// More than one block of the diagonal.
TEST_P(symmetric, large_updates) {
  for (const sg_triangle triangle : {SG_TRIANGLE_LOWER, SG_TRIANGLE_UPPER}) {
    const sg_dtype type = triangle == SG_TRIANGLE_LOWER ? SG_DTYPE_F64 : SG_DTYPE_C64;
    sg_rank_k_desc d = drawn_update(type);
    d.triangle = triangle;
    run_update(d, type, 258, 2, true);
    if (HasFatalFailure()) return;
  }
}

// C of an update in pageable and in pinned memory: the other triangle keeps its bits, and what is no part of the
// matrix.
TEST_P(symmetric, updates_in_host_memory_leave_the_other_triangle) {
  constexpr std::int64_t n = 270, k = 2, ld = 275;
  void *pinned = nullptr;
  ASSERT_OK(sg_host_alloc(context_, n * ld * sizeof(double), &pinned));
  std::vector<double> pageable(n * ld), a(n * k, 0.5);
  for (double *c : {pageable.data(), static_cast<double *>(pinned)})
    for (const sg_triangle triangle : {SG_TRIANGLE_LOWER, SG_TRIANGLE_UPPER}) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < ld; ++j)
          c[i * ld + j] = j < n && sg_reference::is_within(triangle, i, j) ? double(i - j) : nan;
      sg_rank_k_desc d = SG_RANK_K_DESC_INIT;
      d.a = {a.data(), n, k, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
      d.c = {c, n, n, ld, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
      d.triangle = triangle, d.beta = {2, 0};
      ASSERT_OK(sg_rank_k(context_, &d, nullptr));
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < ld; ++j) {
          const double found = c[i * ld + j];
          const bool is_result = j < n && sg_reference::is_within(triangle, i, j);
          if (is_result) {
            ASSERT_EQ(2.0 * double(i - j) + 0.5, found) << i << ", " << j;
          } else {
            ASSERT_EQ(0, std::memcmp(&nan, &found, sizeof nan)) << i << ", " << j;
          }
        }
    }
  ASSERT_OK(sg_host_free(context_, pinned));
}

TEST_P(symmetric, factors_of_zero_read_nothing) {
  for (const sg_dtype type : blas_types) {
    matrix c(context_, type, 3, 3, {});
    for (std::int64_t i = 0; i < 9; ++i) c.set(i / 3, i % 3, (long double)(i));
    c.send();
    sg_symmetric_desc product = SG_SYMMETRIC_DESC_INIT;
    product.a = product.b = {nullptr, 3, 3, 0, type, SG_LAYOUT_ROW_MAJOR}, product.c = c.view;
    product.alpha = {0, 0}, product.beta = {2, 0};
    ASSERT_OK(sg_symmetric(context_, &product, nullptr));
    sg_rank_k_desc update = SG_RANK_K_DESC_INIT;
    update.a = {nullptr, 3, 0, 0, type, SG_LAYOUT_ROW_MAJOR}, update.c = c.view, update.beta = {0.5, 0};
    update.triangle = SG_TRIANGLE_UPPER;
    ASSERT_OK(sg_rank_k(context_, &update, nullptr));
    c.fetch();
    for (std::int64_t i = 0; i < 9; ++i)
      EXPECT_EQ((long double)(i / 3 <= i % 3 ? i : 2 * i), c.get(i / 3, i % 3)) << sg_dtype_name(type) << " " << i;
    update.beta = {0, 0};
    ASSERT_OK(sg_rank_k(context_, &update, nullptr));
    c.fetch();
    for (std::int64_t i = 0; i < 9; ++i)
      EXPECT_EQ((long double)(i / 3 <= i % 3 ? 0 : 2 * i), c.get(i / 3, i % 3)) << sg_dtype_name(type) << " " << i;
  }
}

TEST_P(symmetric, is_recorded_and_updated) {
  matrix a(context_, SG_DTYPE_F32, 2, 1, {}), c(context_, SG_DTYPE_F32, 2, 2, {}), y(context_, SG_DTYPE_F32, 2, 1, {});
  a.set(0, 0, 2), a.set(1, 0, 3);
  a.send(), c.send(), y.send();
  owned<sg_graph, sg_graph_release> graph;
  ASSERT_OK(sg_graph_create(context_, graph.out()));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  sg_rank_k_desc update = SG_RANK_K_DESC_INIT;  // c = (4 .; 6 9)
  update.a = a.view, update.c = c.view;
  sg_symmetric_desc product = SG_SYMMETRIC_DESC_INIT;  // y = c * a = (4*2 + 6*3; 6*2 + 9*3)
  product.a = c.view, product.b = a.view, product.c = y.view;
  for (const sg_submit *submit : {static_cast<const sg_submit *>(nullptr), static_cast<const sg_submit *>(&record)}) {
    ASSERT_OK(sg_rank_k_async(context_, &update, submit, nullptr));
    ASSERT_OK(sg_symmetric_async(context_, &product, submit, nullptr));
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  y.fetch();
  EXPECT_EQ(26, y.get(0, 0));
  EXPECT_EQ(39, y.get(1, 0));
  sg_operation_desc change = SG_OPERATION_DESC_INIT;
  change.operation = SG_OPERATION_SYMMETRIC, change.desc = &product;
  product.alpha = {2, 0}, product.beta = {1, 0};
  ASSERT_OK(sg_graph_update(graph, 1, &change));
  change.operation = SG_OPERATION_RANK_K, change.desc = &update;
  update.alpha = {-1, 0};
  ASSERT_OK(sg_graph_update(graph, 0, &change));
  update.triangle = SG_TRIANGLE_UPPER;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 0, &change));
  job run;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, run.out()));
  ASSERT_OK(sg_job_wait(run, SG_FOREVER, nullptr));
  y.fetch();
  EXPECT_EQ(26 - 52, y.get(0, 0));
  EXPECT_EQ(39 - 78, y.get(1, 0));
}

TEST_P(symmetric, products_are_split_on_cores) {
  if (std::string(GetParam()) != "cpu") GTEST_SKIP() << "lanes of other devices are no cores";
  const context two = open_context("cpu", 2);
  for (const sg_side side : {SG_SIDE_LEFT, SG_SIDE_RIGHT}) {
    const std::int64_t rows = side == SG_SIDE_LEFT ? 4 : 20'000, cols = side == SG_SIDE_LEFT ? 20'000 : 4;
    matrix a(two, SG_DTYPE_F64, 4, 4, {}), b(two, SG_DTYPE_F64, rows, cols, {}), c(two, SG_DTYPE_F64, rows, cols, {});
    fill(a, random_), fill(b, random_);
    a.send(), b.send(), c.send();
    sg_symmetric_desc d = SG_SYMMETRIC_DESC_INIT;
    d.a = a.view, d.b = b.view, d.c = c.view, d.side = side;
    const std::vector<std::uint8_t> before = c.gaps();
    job handle;
    ASSERT_OK(sg_symmetric_async(two, &d, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(handle, &statistics));
    EXPECT_STREQ("symmetric product x2", statistics.strategy);
    sg_reference::sum_of_products wanted(rows, cols);
    const dense s = of_symmetric(dense_of(a), d.triangle, false), other = dense_of(b);
    side == SG_SIDE_LEFT ? wanted.add(1, s, other) : wanted.add(1, other, s);
    expect(c, before, wanted, 4, nullptr, "split");
  }
}

// In columns of equal work: a block on the diagonal each, and the rectangle beside it.
TEST_P(symmetric, updates_are_split_on_cores) {
  if (std::string(GetParam()) != "cpu") GTEST_SKIP() << "lanes of other devices are no cores";
  const context two = open_context("cpu", 2);
  for (int form = 0; form < 6; ++form) {
    const sg_dtype type = form % 2 ? SG_DTYPE_C128 : SG_DTYPE_F64;
    const bool has_b = form == 1 || form == 2 || form == 5, transposes = form < 2,
               is_hermitian = form == 3 || form == 5;
    // The last of f64 is deep: its A is what costs.
    const std::int64_t n = form == 4 ? 36 : type == SG_DTYPE_F64 ? 262 : 186, k = form == 4 ? 2000 : 2;
    sg_rank_k_desc d = SG_RANK_K_DESC_INIT;
    d.triangle = form % 3 ? SG_TRIANGLE_UPPER : SG_TRIANGLE_LOWER, d.beta = {0.5, 0}, d.alpha = {-2, 0};
    d.symmetry = is_hermitian ? SG_SYMMETRY_HERMITIAN : SG_SYMMETRY_SYMMETRIC;
    const sg_transpose turned = is_hermitian ? SG_TRANSPOSE_C : SG_TRANSPOSE_T;
    d.op_a = transposes ? turned : SG_TRANSPOSE_N;
    if (is_hermitian && has_b) d.alpha.im = 0.75;
    const std::int64_t rows = transposes ? k : n, cols = transposes ? n : k;
    matrix a(two, type, rows, cols, {}), b(two, type, rows, cols, {}), c(two, type, n, n, {});
    fill(a, random_), fill(b, random_), fill(c, random_);
    for (std::int64_t i = 0; i < n && is_hermitian; ++i) c.set_number(i, i, c.get_number(i, i).real());
    spoil_outside(c, d.triangle);
    a.send(), b.send(), c.send();
    d.a = a.view, d.c = c.view;
    if (has_b) d.b = b.view;
    const std::vector<std::uint8_t> before = untouched(c, &d.triangle);
    sg_reference::sum_of_products wanted(n, n);
    const dense x = after(dense_of(a), d.op_a), y = has_b ? after(dense_of(b), d.op_a) : x;
    const number alpha = factor_of(d.alpha, type);
    wanted.add(alpha, x, after(y, turned));
    if (has_b) wanted.add(is_hermitian ? std::conj(alpha) : alpha, y, after(x, turned));
    wanted.add(0.5L, dense_of(c));
    job handle;
    ASSERT_OK(sg_rank_k_async(two, &d, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
    ASSERT_OK(sg_job_get_statistics(handle, &statistics));
    EXPECT_STREQ("symmetric update x2", statistics.strategy);
    expect(c, before, wanted, 2 * k, &d.triangle, "split " + std::to_string(form));
    if (HasFatalFailure()) return;
  }
}

TEST_P(symmetric, an_update_does_not_write_all_of_c) {
  buffer memory;
  ASSERT_OK(sg_buffer_create(context_, 6 * sizeof(double), nullptr, memory.out()));
  void *data = nullptr;
  ASSERT_OK(sg_buffer_data(memory, &data));
  auto *const c = static_cast<double *>(data);
  // A failure to write C outlives the update, which leaves a triangle.
  sg_custom_operand operand = {c, 4 * sizeof(double), SG_ACCESS_WRITE};
  sg_custom_desc fails = SG_CUSTOM_DESC_INIT;
  fails.function = [](const sg_custom_call *, void *) { return SG_STATUS_BACKEND_FAILURE; };
  fails.operands = &operand, fails.operand_count = 1;
  ASSERT_OK(sg_custom_async(context_, &fails, nullptr, nullptr));
  sg_rank_k_desc update = SG_RANK_K_DESC_INIT;
  update.c = {c, 2, 2, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  update.a = {c + 4, 2, 1, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  ASSERT_OK(sg_rank_k(context_, &update, nullptr));
  double values[4];
  EXPECT_STATUS(SG_STATUS_DEPENDENCY_FAILED, sg_copy(context_, values, c, sizeof values, nullptr));
  // Nor does it write all of a stage's output.
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  options.input_bytes = 2 * sizeof(double);
  owned<sg_pipeline, sg_pipeline_release> made;
  ASSERT_OK(sg_pipeline_create(context_, &options, made.out()));
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  desc.output_bytes = sizeof values;
  sg_stage stage = SG_STAGE_INIT;
  ASSERT_OK(sg_pipeline_add_stage(made, &desc, &stage));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = stage.graph;
  update.a.data = const_cast<void *>(stage.input), update.c.data = stage.output;
  ASSERT_OK(sg_rank_k_async(context_, &update, &record, nullptr));
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_pipeline_prepare(made, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "none writes byte 0 of its output"))
      << sg_last_error_message();
}

TEST_P(symmetric, wrong_calls_name_the_field) {
  const matrix a(context_, SG_DTYPE_F32, 2, 2, {}), b(context_, SG_DTYPE_F32, 2, 3, {}),
      c(context_, SG_DTYPE_F32, 2, 3, {}), s(context_, SG_DTYPE_F32, 2, 2, {});
  const auto has = [](const char *text) {
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message();
  };
  const auto product = [&](sg_status status, const char *text, auto &&spoil) {
    sg_symmetric_desc d = SG_SYMMETRIC_DESC_INIT;
    d.a = a.view, d.b = b.view, d.c = c.view;
    spoil(d);
    EXPECT_STATUS(status, sg_symmetric(context_, &d, nullptr)) << text;
    has(text);
  };
  const auto update = [&](sg_status status, const char *text, auto &&spoil) {
    sg_rank_k_desc d = SG_RANK_K_DESC_INIT;
    d.a = b.view, d.c = s.view;
    spoil(d);
    EXPECT_STATUS(status, sg_rank_k(context_, &d, nullptr)) << text;
    has(text);
  };
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT, unsupported = SG_STATUS_UNSUPPORTED;
  using of_product = sg_symmetric_desc;
  product(invalid, "desc->side is 2, which is no side", [](of_product &d) { d.side = sg_side(2); });
  product(invalid, "desc->triangle is -1, which is no triangle", [](of_product &d) { d.triangle = sg_triangle(-1); });
  product(invalid, "desc->symmetry is 2, which is no symmetry", [](of_product &d) { d.symmetry = sg_symmetry(2); });
  product(invalid, "desc->reserved is 9", [](of_product &d) { d.reserved = 9; });
  product(invalid, "desc->a is 2 x 2; with desc->c of 2 x 3 it must be 3 x 3",
          [](of_product &d) { d.side = SG_SIDE_RIGHT; });
  product(invalid, "desc->b is 2 x 2", [](of_product &d) { d.b.cols = 2; });
  product(invalid, "desc->b.dtype is f64", [](of_product &d) { d.b.dtype = SG_DTYPE_F64; });
  product(unsupported, "desc->c.dtype is bf16; it must be f64, f32, c64 or c128",
          [](of_product &d) { d.a.dtype = d.b.dtype = d.c.dtype = SG_DTYPE_BF16; });
  product(unsupported, "give both one layout", [](of_product &d) {
    d.a.dtype = d.b.dtype = d.c.dtype = SG_DTYPE_C64, d.symmetry = SG_SYMMETRY_HERMITIAN;
    d.a.layout = SG_LAYOUT_COLUMN_MAJOR;
  });
  product(unsupported, "desc->b.layout is 1; of c64",
          [](of_product &d) { d.a.dtype = d.b.dtype = d.c.dtype = SG_DTYPE_C64, d.b.layout = SG_LAYOUT_COLUMN_MAJOR; });
  product(invalid, "desc->a.data is NULL", [](of_product &d) { d.a.data = nullptr; });
  product(invalid, "overlap", [](of_product &d) { d.b.data = d.c.data; });
  using of_update = sg_rank_k_desc;
  update(invalid, "desc->op_a is 3, which is no op", [](of_update &d) { d.op_a = sg_transpose(3); });
  update(invalid, "desc->op_a is C; of a complex symmetric matrix it must be N or T", [](of_update &d) {
    d.a.dtype = d.c.dtype = SG_DTYPE_C64, d.op_a = SG_TRANSPOSE_C, d.a.rows = 2, d.a.cols = 2;
  });
  update(invalid, "desc->op_a is T; of a complex Hermitian matrix it must be N or C", [](of_update &d) {
    d.a.dtype = d.c.dtype = SG_DTYPE_C64, d.op_a = SG_TRANSPOSE_T, d.symmetry = SG_SYMMETRY_HERMITIAN;
  });
  update(invalid, "desc->c is 2 x 1", [](of_update &d) { d.c.cols = 1; });
  update(invalid, "desc->a is 2 x 3; with desc->c of 2 x 2 it must be 2 x 2",
         [](of_update &d) { d.op_a = SG_TRANSPOSE_T; });
  update(invalid, "desc->b is 2 x 2", [&](of_update &d) { d.b = d.c; });
  update(invalid, "desc->alpha.im is 0.5; of a Hermitian matrix it must be 0", [](of_update &d) {
    d.a.dtype = d.c.dtype = SG_DTYPE_C64, d.symmetry = SG_SYMMETRY_HERMITIAN, d.alpha.im = 0.5;
  });
  update(invalid, "desc->beta.im is 1; of a Hermitian matrix it must be 0", [](of_update &d) {
    d.a.dtype = d.c.dtype = SG_DTYPE_C64, d.symmetry = SG_SYMMETRY_HERMITIAN, d.beta = {1, 1};
  });
  update(invalid, "desc->c.data is NULL", [](of_update &d) { d.c.data = nullptr; });
  update(invalid, "overlap", [](of_update &d) { d.a = d.c; });
}

ON_EACH_DEVICE(symmetric);

}  // namespace
}  // namespace sg_test
