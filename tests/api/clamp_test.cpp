// SPDX-License-Identifier: Apache-2.0
// sg_clamp and its gradient: values at, between and beyond the limits in every type, matrices with gaps, in place, in
// order, in graphs, refused calls. The reference is the definition in extended precision.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support/strided_matrix.hpp"

namespace sg_test {
namespace {

using reals = std::vector<long double>;
constexpr long double infinite = std::numeric_limits<long double>::infinity(), unwritten = strided_matrix::unwritten;
const long double nan_value = std::numeric_limits<long double>::quiet_NaN();
constexpr sg_dtype layer_types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16};

class clamp : public on_each_device {
 protected:
  // Lines of values with gaps behind them: rows, or by_columns().
  class matrix : public strided_matrix {
   public:
    matrix(sg_context *on, sg_dtype type, std::int64_t lines, std::int64_t size, std::int64_t gap, const reals &values)
        : strided_matrix(on, type, lines, size, {SG_LAYOUT_ROW_MAJOR, gap}) {
      for (std::int64_t i = 0; i < lines; ++i)
        for (std::int64_t j = 0; j < size; ++j) set(i, j, values[std::size_t(i * size + j) % values.size()]);
      send();
    }
    // The same memory, with columns for its rows.
    sg_matrix by_columns() const {
      return {view.data, view.cols, view.rows, view.ld, view.dtype, SG_LAYOUT_COLUMN_MAJOR};
    }
    // Elements row by row; the gaps keep their bytes.
    reals values() {
      const std::vector<std::uint8_t> before = gaps();
      fetch();
      EXPECT_EQ(before, gaps()) << "a gap was written";
      reals all;
      for (std::int64_t i = 0; i < view.rows; ++i)
        for (std::int64_t j = 0; j < view.cols; ++j) all.push_back(get(i, j));
      return all;
    }
  };
  // As a limit: in the arithmetic of the type.
  static long double limit(sg_dtype type, double value) {
    return type == SG_DTYPE_F64 ? value : static_cast<long double>(static_cast<float>(value));
  }
  static void expect_same(const reals &wanted, const reals &found, const std::string &what) {
    ASSERT_EQ(wanted.size(), found.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      ASSERT_TRUE(std::isnan(wanted[i]) ? std::isnan(found[i]) : wanted[i] == found[i])
          << what << ", element " << i << ": " << double(found[i]) << " instead of " << double(wanted[i]);
  }
  static sg_clamp_desc desc_of(const sg_matrix &x, const sg_matrix &y, double low, double high) {
    sg_clamp_desc desc = SG_CLAMP_DESC_INIT;
    desc.x = x, desc.y = y, desc.low = low, desc.high = high;
    return desc;
  }
  static sg_clamp_backward_desc gradient_of(const sg_matrix &dy, const sg_matrix &x, const sg_matrix &dx, double low,
                                            double high) {
    sg_clamp_backward_desc desc = SG_CLAMP_BACKWARD_DESC_INIT;
    desc.dy = dy, desc.x = x, desc.dx = dx, desc.low = low, desc.high = high;
    return desc;
  }
};

// At a limit the gradient passes; the gradient at a NaN is 0.
TEST_P(clamp, values_and_gradients_of_every_type) {
  const double limits[][2] = {{-1, 2}, {0, 0}, {2, -1}, {0.1, 0.3}, {-INFINITY, 1}, {0, INFINITY}, {-1e300, 1e300}};
  for (const sg_dtype type : layer_types)
    for (const auto &[low, high] : limits) {
      const std::string what =
          std::string(sg_dtype_name(type)) + " " + std::to_string(low) + " to " + std::to_string(high);
      const reals points = {
          -infinite, -3,       -1,       std::nextafter(-1.0L, -2.0L), -0.5L, 0, 0.1L, 0.3L, 1.5, 2, 2.25,
          100,       infinite, nan_value};
      reals wanted, passed, factors;
      for (const long double each : points) {
        const long double x = rounded(type, each), l = limit(type, low), h = limit(type, high);
        wanted.push_back(rounded(type, std::isnan(x) ? x : std::min(std::max(x, l), h)));
        factors.push_back(rounded(type, 3 + 0.125L * static_cast<long double>(factors.size())));
        passed.push_back(l <= x && x <= h ? factors.back() : 0);
      }
      const auto lines = std::int64_t(2), size = std::int64_t(points.size() / 2);
      const matrix x(context_, type, lines, size, 0, points), dy(context_, type, lines, size, 3, factors);
      matrix y(context_, type, lines, size, 1, {unwritten}), dx(context_, type, lines, size, 2, {unwritten});
      const sg_clamp_desc forward = desc_of(x.view, y.view, low, high);
      ASSERT_OK(sg_clamp(context_, &forward, nullptr));
      expect_same(wanted, y.values(), what);
      const sg_clamp_backward_desc backward = gradient_of(dy.view, x.view, dx.view, low, high);
      ASSERT_OK(sg_clamp_backward(context_, &backward, nullptr));
      expect_same(passed, dx.values(), "gradient of " + what);
    }
}

// Packs of elements, single ones, and parts for several workers.
TEST_P(clamp, sizes_layouts_and_in_place) {
  random_source random(5);
  for (const sg_dtype type : layer_types)
    for (const auto &[lines, size] :
         {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 7}, {5, 64}, {2, 2050}, {420, 401}})
      for (const std::int64_t gap : {0, 1, 16}) {
        if (lines > 100 && (type != SG_DTYPE_F32 || gap != 1)) continue;
        reals values(std::size_t(lines * size)), factors(values.size()), wanted, passed;
        for (long double &each : values) each = rounded(type, 2 * random.real());
        for (long double &each : factors) each = rounded(type, random.real());
        for (std::size_t i = 0; i < values.size(); ++i) {
          wanted.push_back(std::min(std::max(values[i], -0.5L), 0.75L));
          passed.push_back(-0.5L <= values[i] && values[i] <= 0.75L ? factors[i] : 0);
        }
        const std::string what = std::string(sg_dtype_name(type)) + " " + std::to_string(lines) + " x " +
                                 std::to_string(size) + ", gap " + std::to_string(gap);
        matrix x(context_, type, lines, size, gap, values), dy(context_, type, lines, size, gap, factors);
        const sg_clamp_backward_desc backward =
            gradient_of(dy.by_columns(), x.by_columns(), dy.by_columns(), -0.5, 0.75);  // dX is dY
        ASSERT_OK(sg_clamp_backward(context_, &backward, nullptr));
        expect_same(passed, dy.values(), "gradient of " + what);
        const sg_clamp_desc forward = desc_of(x.view, x.view, -0.5, 0.75);
        ASSERT_OK(sg_clamp(context_, &forward, nullptr));
        expect_same(wanted, x.values(), what);
      }
}

TEST_P(clamp, follows_the_jobs_of_its_operands_and_is_recorded) {
  const matrix x(context_, SG_DTYPE_F32, 2, 2, 0, {-2, 0.5L, 1, 3});
  matrix y(context_, SG_DTYPE_F32, 2, 2, 0, {unwritten}), dx(context_, SG_DTYPE_F32, 2, 2, 0, {unwritten});
  owned<sg_graph, sg_graph_release> graph;
  ASSERT_OK(sg_graph_create(context_, graph.out()));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  const sg_clamp_desc forward = desc_of(x.view, y.view, 0, 1);
  sg_clamp_backward_desc backward = gradient_of(y.view, x.view, dx.view, 0, 1);
  for (const sg_submit *submit : {static_cast<const sg_submit *>(nullptr), static_cast<const sg_submit *>(&record)}) {
    ASSERT_OK(sg_clamp_async(context_, &forward, submit, nullptr));
    ASSERT_OK(sg_clamp_backward_async(context_, &backward, submit, nullptr));  // of Y as dY
  }
  ASSERT_OK(sg_context_synchronize(context_, SG_FOREVER));
  expect_same({0, 0.5L, 1, 0}, dx.values(), "in order");
  const matrix other(context_, SG_DTYPE_F32, 2, 2, 0, {0, 9, 9, 0.25L});
  backward.x = other.view;
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  update.operation = SG_OPERATION_CLAMP_BACKWARD, update.desc = &backward;
  ASSERT_OK(sg_graph_update(graph, 1, &update));
  job run;
  ASSERT_OK(sg_graph_run_async(graph, nullptr, run.out()));
  ASSERT_OK(sg_job_wait(run, SG_FOREVER, nullptr));
  expect_same({0, 0, 0, 1}, dx.values(), "updated");
  backward.high = 9;
  ASSERT_OK(sg_graph_update(graph, 1, &update));
  ASSERT_OK(sg_graph_run(graph, nullptr));
  expect_same({0, 0.5L, 1, 1}, dx.values(), "with another limit");
  backward.dy.cols = backward.x.cols = backward.dx.cols = 1;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_graph_update(graph, 1, &update));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "recorded as clamp gradient of 2 x 2"))
      << sg_last_error_message();
  sg_operation_desc any = SG_OPERATION_DESC_INIT;
  any.operation = SG_OPERATION_CLAMP, any.desc = &forward;
  job handle;
  ASSERT_OK(sg_run_async(context_, &any, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(handle, &statistics));
  EXPECT_STREQ("clamp", statistics.strategy);
  EXPECT_EQ(4, statistics.flops);
}

TEST_P(clamp, wrong_calls_name_the_field) {
  const matrix x(context_, SG_DTYPE_F32, 2, 3, 0, {1}), y(context_, SG_DTYPE_F32, 2, 3, 0, {1});
  const auto refused = [&](sg_status status, const char *text, auto &&spoil) {
    sg_clamp_desc desc = desc_of(x.view, y.view, 0, 1);
    spoil(desc);
    EXPECT_STATUS(status, sg_clamp(context_, &desc, nullptr)) << text;
    EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), text)) << sg_last_error_message();
  };
  constexpr sg_status invalid = SG_STATUS_INVALID_ARGUMENT;
  refused(invalid, "desc->low is NaN", [](sg_clamp_desc &d) { d.low = NAN; });
  refused(invalid, "desc->high is NaN", [](sg_clamp_desc &d) { d.high = NAN; });
  refused(invalid, "desc->x is 1 x 3", [](sg_clamp_desc &d) { d.x.rows = 1; });
  refused(invalid, "desc->y.data is NULL", [](sg_clamp_desc &d) { d.y.data = nullptr; });
  refused(invalid, "overlap",
          [&](sg_clamp_desc &d) { d.y.data = static_cast<float *>(d.x.data) + 1, d.y.rows = d.x.rows = 1; });
  refused(SG_STATUS_UNSUPPORTED, "desc->y.dtype is c64",
          [](sg_clamp_desc &d) { d.x.dtype = d.y.dtype = SG_DTYPE_C64; });
  sg_clamp_backward_desc backward = gradient_of(y.view, x.view, y.view, 0, 1);
  backward.dy.dtype = SG_DTYPE_F64;
  EXPECT_STATUS(invalid, sg_clamp_backward(context_, &backward, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "desc->dy.dtype is f64")) << sg_last_error_message();
}

ON_EACH_DEVICE(clamp);

}  // namespace
}  // namespace sg_test
