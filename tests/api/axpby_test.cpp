// SPDX-License-Identifier: Apache-2.0
// sg_axpby: results in both layouts, order after the jobs that write its operands, graphs, refused calls.
#include <cstring>

#include "support/numbers.hpp"
#include "support/placed_values.hpp"

namespace sg_test {
namespace {

class axpby : public placed_values {
 protected:
  using on_device = placed<double>;
  on_device place(const std::vector<double> &values) { return placed_values::place(values); }
  static sg_axpby_desc of(double *a, double *c, std::int64_t rows, std::int64_t cols, std::int64_t lda = 0,
                          std::int64_t ldc = 0, sg_layout layout = SG_LAYOUT_ROW_MAJOR) {
    sg_axpby_desc desc = SG_AXPBY_DESC_INIT;
    desc.a = {a, rows, cols, lda, SG_DTYPE_F64, layout};
    desc.c = {c, rows, cols, ldc, SG_DTYPE_F64, layout};
    return desc;
  }
};

TEST_P(axpby, both_layouts_with_gaps) {
  for (const sg_layout layout : {SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR}) {
    std::vector<double> a(5 * 7), c(5 * 9);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = double(i) - 11;
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = 100 - double(i);
    const bool by_rows = layout == SG_LAYOUT_ROW_MAJOR;
    const std::int64_t rows = by_rows ? 5 : 6, cols = by_rows ? 6 : 5;
    const on_device at_a = place(a), at_c = place(c);
    sg_axpby_desc desc = of(at_a, at_c, rows, cols, 7, 9, layout);
    desc.alpha.re = 3, desc.beta.re = -2;
    desc.activation = SG_ACTIVATION_RELU;
    ASSERT_OK(sg_axpby(context_, &desc, nullptr));
    const std::vector<double> before = c;
    for (std::size_t line = 0; line < 5; ++line)
      for (std::size_t i = 0; i < 6; ++i)
        c[line * 9 + i] = std::max(0.0, 3 * a[line * 7 + i] - 2 * before[line * 9 + i]);
    EXPECT_EQ(c, fetch(at_c, c.size()));
  }
}

TEST_P(axpby, an_activation_in_place_reads_no_a) {
  const on_device c = place({-1, 2, -3, 4});
  sg_axpby_desc desc = of(nullptr, c, 2, 2);
  desc.alpha.re = 0;
  desc.activation = SG_ACTIVATION_RELU;
  ASSERT_OK(sg_axpby(context_, &desc, nullptr));
  EXPECT_EQ((std::vector<double>{0, 2, 0, 4}), fetch(c, 4));
}

TEST_P(axpby, beta_zero_reads_no_c) {
  const on_device a = place({1, 2, 3, 4}), c = place({NAN, INFINITY, NAN, 0});
  sg_axpby_desc desc = of(a, c, 2, 2);
  desc.beta.re = 0, desc.alpha.re = -1;
  ASSERT_OK(sg_axpby(context_, &desc, nullptr));
  EXPECT_EQ((std::vector<double>{-1, -2, -3, -4}), fetch(c, 4));
}

// GEMM, scale-and-add and copy without waits between them: the order follows from the data.
TEST_P(axpby, follows_the_jobs_that_write_its_operands) {
  constexpr std::int64_t n = 64;
  const std::vector<double> ones(n * n, 1.0);
  const on_device x = place(ones), y = place(ones), z = place(ones);
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<double> result(n * n);
    const sg_gemm_desc gemm = make_gemm(x, y, z, n, n, n);  // 64
    ASSERT_OK(sg_gemm_async(context_, &gemm, nullptr, nullptr));
    sg_axpby_desc sum = of(x, z, n, n);
    sum.alpha.re = turn, sum.beta.re = 2;
    ASSERT_OK(sg_axpby_async(context_, &sum, nullptr, nullptr));
    job copied;
    ASSERT_OK(sg_copy_async(context_, result.data(), z, n * n * sizeof(double), nullptr, copied.out()));
    ASSERT_OK(sg_job_wait(copied, SG_FOREVER, nullptr));
    ASSERT_EQ(std::vector<double>(n * n, 2.0 * n + turn), result);
  }
}

TEST_P(axpby, is_recorded_in_a_graph) {
  const on_device a = place({1, 2, 3}), c = place({0, 0, 0});
  sg_graph *graph = nullptr;
  ASSERT_OK(sg_graph_create(context_, &graph));
  sg_submit submit = SG_SUBMIT_INIT;
  submit.graph = graph;
  const sg_axpby_desc desc = of(a, c, 1, 3);
  ASSERT_OK(sg_axpby_async(context_, &desc, &submit, nullptr));
  for (int run = 0; run < 3; ++run) {
    job handle;
    ASSERT_OK(sg_graph_run_async(graph, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  }
  EXPECT_EQ((std::vector<double>{3, 6, 9}), fetch(c, 3));
  EXPECT_OK(sg_graph_release(graph));
}

TEST_P(axpby, an_empty_c_succeeds) {
  const sg_axpby_desc desc = of(nullptr, nullptr, 0, 5);
  job handle;
  ASSERT_OK(sg_axpby_async(context_, &desc, nullptr, handle.out()));
  EXPECT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
}

TEST_P(axpby, wrong_calls_name_the_field) {
  const on_device a = place({1, 2, 3, 4}), c = place({1, 2, 3, 4});
  const auto refused = [&](sg_status status, const char *part, auto &&spoil) {
    sg_axpby_desc desc = of(a, c, 2, 2);
    spoil(desc);
    EXPECT_STATUS(status, sg_axpby(context_, &desc, nullptr));
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), part)) << sg_last_error_message();
  };
  refused(SG_STATUS_INVALID_ARGUMENT, "desc->a is 3 x 2", [](sg_axpby_desc &d) { d.a.rows = 3; });
  refused(SG_STATUS_INVALID_ARGUMENT, "desc->a.dtype", [](sg_axpby_desc &d) { d.a.dtype = SG_DTYPE_F32; });
  refused(SG_STATUS_UNSUPPORTED, "desc->a.layout is 1 and desc->c.layout is 0; of i32",
          [](sg_axpby_desc &d) { d.a.layout = SG_LAYOUT_COLUMN_MAJOR, d.a.dtype = d.c.dtype = SG_DTYPE_I32; });
  refused(SG_STATUS_UNSUPPORTED, "desc->c.dtype is i8", [](sg_axpby_desc &d) { d.a.dtype = d.c.dtype = SG_DTYPE_I8; });
  refused(SG_STATUS_INVALID_ARGUMENT, "desc->c", [](sg_axpby_desc &d) { d.c.data = nullptr; });
  refused(SG_STATUS_INVALID_ARGUMENT, "desc->a", [](sg_axpby_desc &d) { d.a.data = nullptr; });
  refused(SG_STATUS_INVALID_ARGUMENT, "overlap", [](sg_axpby_desc &d) { d.a.data = d.c.data; });
  refused(SG_STATUS_INVALID_ARGUMENT, "desc->reserved", [](sg_axpby_desc &d) { d.reserved = 1; });
  refused(SG_STATUS_INVALID_ARGUMENT, "desc->activation", [](sg_axpby_desc &d) { d.activation = sg_activation(9); });
  refused(SG_STATUS_INVALID_ARGUMENT, "desc->struct_size", [](sg_axpby_desc &d) { d.struct_size = 8; });
  refused(SG_STATUS_UNSUPPORTED, "desc->activation is relu", [](sg_axpby_desc &d) {
    d.a.dtype = d.c.dtype = SG_DTYPE_C64;
    d.activation = SG_ACTIVATION_RELU;
  });
  EXPECT_EQ((std::vector<double>{1, 2, 3, 4}), fetch(c, 4));
}

ON_EACH_DEVICE(axpby);

}  // namespace
}  // namespace sg_test
