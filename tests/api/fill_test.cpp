// SPDX-License-Identifier: Apache-2.0
// sg_fill: every type, layout and gap, how values are rounded, order, graphs, refused calls.
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/layer_case.hpp"
#include "support/numbers.hpp"
#include "support/placed_values.hpp"
#include "support/strided_matrix.hpp"

namespace sg_test {
namespace {

constexpr sg_dtype all_types[] = {SG_DTYPE_F64,  SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16,    SG_DTYPE_C64,
                                  SG_DTYPE_C128, SG_DTYPE_I8,  SG_DTYPE_I32, SG_DTYPE_F8_E4M3, SG_DTYPE_F8_E5M2};

class fill : public placed_values {
 protected:
  static sg_fill_desc desc_of(const sg_matrix &y, double re, double im = 0) {
    sg_fill_desc desc = SG_FILL_DESC_INIT;
    desc.y = y, desc.value = {re, im};
    return desc;
  }
  // The bits of one element that has been filled.
  std::uint64_t bits_of(sg_dtype type, double value) {
    strided_matrix y(context_, type, 1, 1, {});
    const sg_fill_desc desc = desc_of(y.view, value);
    EXPECT_OK(sg_fill(context_, &desc, nullptr)) << sg_dtype_name(type) << " " << value;
    y.fetch();
    std::uint64_t bits = 0;
    std::memcpy(&bits, y.bytes().data(), std::min<std::size_t>(8, std::size_t(sg_dtype_size(type))));
    return bits;
  }
  void refused(sg_status status, const char *text, const sg_fill_desc &desc) {
    EXPECT_REFUSED(sg_fill(context_, &desc, nullptr), status, text);
  }
};

TEST_P(fill, every_type_layout_and_gap) {
  for (const sg_dtype type : all_types)
    for (const sg_layout layout : {SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR})
      for (const auto &[rows, cols] :
           {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 7}, {64, 33}, {1, 4099}, {410, 401}})
        for (const std::int64_t gap : {0, 1, 16})
          for (const std::int64_t offset : {0, 1}) {
            if (rows > 100 && (gap != 1 || offset != 1)) continue;
            strided_matrix y(context_, type, rows, cols, {layout, gap, offset});
            y.send();
            const std::vector<std::uint8_t> before = y.gaps();
            const bool is_complex = type == SG_DTYPE_C64 || type == SG_DTYPE_C128;
            const sg_fill_desc desc = desc_of(y.view, -3, 2);
            ASSERT_OK(sg_fill(context_, &desc, nullptr));
            y.fetch();
            for (std::int64_t i = 0; i < rows; ++i)
              for (std::int64_t j = 0; j < cols; ++j)
                ASSERT_EQ(number(-3, is_complex ? 2 : 0), y.get_number(i, j))
                    << sg_dtype_name(type) << " " << rows << " x " << cols << ", gap " << gap << ", at " << i << ", "
                    << j;
            ASSERT_EQ(before, y.gaps()) << sg_dtype_name(type) << ": a gap was written";
          }
}

// Ties go to even, also of subnormal numbers.
TEST_P(fill, values_are_rounded) {
  const struct {
    sg_dtype type;
    double value;
    std::uint64_t bits;
  } cases[] = {
      {SG_DTYPE_F64, 0.1, std::bit_cast<std::uint64_t>(0.1)},
      {SG_DTYPE_F32, 0.1, std::bit_cast<std::uint32_t>(0.1f)},
      {SG_DTYPE_F16, 65504, 0x7bff},
      {SG_DTYPE_F16, 65519.99, 0x7bff},
      {SG_DTYPE_F16, 0x1p-24, 1},
      {SG_DTYPE_F16, 0x1p-25, 0},
      {SG_DTYPE_F16, 0x1.8p-24, 2},
      {SG_DTYPE_F16, 0x1.8p-25, 1},
      {SG_DTYPE_F16, 0x1.002p0, 0x3c00},
      {SG_DTYPE_F16, 0x1.006p0, 0x3c02},
      {SG_DTYPE_F16, 0x1.00200001p0, 0x3c01},  // by way of f32 it would be a tie
      {SG_DTYPE_F16, -0.0, 0x8000},
      {SG_DTYPE_F16, -INFINITY, 0xfc00},
      {SG_DTYPE_F16, NAN, 0x7e00},
      {SG_DTYPE_BF16, 1, 0x3f80},
      {SG_DTYPE_BF16, 0x1.fep127, 0x7f7f},
      {SG_DTYPE_BF16, 0x1p-133, 1},
      {SG_DTYPE_BF16, INFINITY, 0x7f80},
      {SG_DTYPE_F8_E4M3, 448, 0x7e},
      {SG_DTYPE_F8_E4M3, -464, 0xfe},
      {SG_DTYPE_F8_E4M3, 0x1p-9, 1},
      {SG_DTYPE_F8_E4M3, 0x1p-10, 0},
      {SG_DTYPE_F8_E4M3, NAN, 0x7f},
      {SG_DTYPE_F8_E5M2, 57344, 0x7b},
      {SG_DTYPE_F8_E5M2, INFINITY, 0x7c},
      {SG_DTYPE_F8_E5M2, NAN, 0x7e},
      {SG_DTYPE_I8, -128, 0x80},
      {SG_DTYPE_I32, 2147483647, 0x7fffffff},
  };
  for (const auto &each : cases)
    EXPECT_EQ(each.bits, bits_of(each.type, each.value)) << sg_dtype_name(each.type) << " " << each.value;
}

// What each pattern of a short type stands for is rounded to that pattern.
TEST_P(fill, every_number_of_short_types) {
  for (const sg_dtype type : {SG_DTYPE_F16, SG_DTYPE_BF16, SG_DTYPE_F8_E4M3, SG_DTYPE_F8_E5M2})
    for (unsigned bits = 0, end = 1u << (8 * sg_dtype_size(type)); bits<end; bits += end> 256 ? 331 : 1) {
      std::uint8_t stored[2];
      std::memcpy(stored, &bits, sizeof stored);
      const auto value = double(load(type, stored).real());
      if (!std::isnan(value)) {
        ASSERT_EQ(bits, bits_of(type, value)) << sg_dtype_name(type) << " " << value;
      }
    }
}

TEST_P(fill, what_a_type_cannot_hold_is_refused) {
  const struct {
    sg_dtype type;
    double value;
  } cases[] = {{SG_DTYPE_F32, 1e39},    {SG_DTYPE_F16, 65520},      {SG_DTYPE_BF16, 3.4e38},
               {SG_DTYPE_F8_E4M3, 465}, {SG_DTYPE_F8_E4M3, 1e300},  {SG_DTYPE_F8_E5M2, 61440},
               {SG_DTYPE_I8, 128},      {SG_DTYPE_I8, 1.5},         {SG_DTYPE_I8, NAN},
               {SG_DTYPE_I32, 0.5},     {SG_DTYPE_I32, 2147483648}, {SG_DTYPE_F8_E4M3, -INFINITY}};
  for (const auto &each : cases) {
    const strided_matrix y(context_, each.type, 2, 2, {});
    refused(SG_STATUS_INVALID_ARGUMENT, "desc->value.re is ", desc_of(y.view, each.value));
  }
  const strided_matrix y(context_, SG_DTYPE_C64, 2, 2, {});
  refused(SG_STATUS_INVALID_ARGUMENT, "desc->value.im is 1e+39", desc_of(y.view, 0, 1e39));
}

// GEMM, fill and copy without waits between them; the fill does not read what it overwrites.
TEST_P(fill, follows_the_jobs_of_its_matrix) {
  constexpr std::int64_t n = 64;
  const placed<double> x = place(std::vector<double>(n * n, 1.0)), y = place(std::vector<double>(n * n, NAN));
  for (int turn = 0; turn < 10; ++turn) {
    std::vector<double> result(n * n);
    const sg_gemm_desc gemm = make_gemm(x, x, y, n, n, n);
    ASSERT_OK(sg_gemm_async(context_, &gemm, nullptr, nullptr));
    const sg_fill_desc desc = desc_of({y, n, n / 2, n, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR}, turn);
    ASSERT_OK(sg_fill_async(context_, &desc, nullptr, nullptr));
    ASSERT_OK(sg_copy(context_, result.data(), y, n * n * sizeof(double), nullptr));
    for (std::int64_t i = 0; i < n * n; ++i) ASSERT_EQ(i % n < n / 2 ? turn : n, result[std::size_t(i)]) << i;
  }
}

TEST_P(fill, is_recorded_updated_and_run_by_number) {
  const placed<double> y = place(std::vector<double>{1, 2}), other = place(std::vector<double>{1, 2});
  sg_fill_desc desc = desc_of({y, 1, 2, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR}, 4);
  owned<sg_graph, sg_graph_release> graph;
  ASSERT_OK(sg_graph_create(context_, graph.out()));
  sg_submit record = SG_SUBMIT_INIT;
  record.graph = graph;
  ASSERT_OK(sg_fill_async(context_, &desc, &record, nullptr));
  ASSERT_OK(sg_graph_run(graph, nullptr));
  EXPECT_EQ((std::vector<double>{4, 4}), fetch(y, 2));
  sg_operation_desc any = SG_OPERATION_DESC_INIT;
  any.operation = SG_OPERATION_FILL, any.desc = &desc;
  desc.y.data = other;
  ASSERT_OK(sg_graph_update(graph, 0, &any));
  ASSERT_OK(sg_graph_run(graph, nullptr));
  EXPECT_EQ((std::vector<double>{4, 4}), fetch(other, 2));
  desc.value.re = 5;
  ASSERT_OK(sg_graph_update(graph, 0, &any));
  ASSERT_OK(sg_graph_run(graph, nullptr));
  EXPECT_EQ((std::vector<double>{5, 5}), fetch(other, 2));
  desc.value.re = 6;
  job handle;
  ASSERT_OK(sg_run_async(context_, &any, nullptr, handle.out()));
  ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
  EXPECT_EQ((std::vector<double>{6, 6}), fetch(other, 2));
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  ASSERT_OK(sg_job_get_statistics(handle, &statistics));
  EXPECT_STREQ("fill", statistics.strategy);
}

// Values are of the run, not of the plan.
TEST_P(fill, one_plan_for_all_values) {
  const placed<float> y = place(std::vector<float>{1, 2, 3});
  sg_fill_desc desc = desc_of({y, 1, 3, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR}, 0);
  sg_operation_desc any = SG_OPERATION_DESC_INIT;
  any.operation = SG_OPERATION_FILL, any.desc = &desc;
  owned<sg_plan, sg_plan_release> plan;
  ASSERT_OK(sg_plan_create(context_, &any, nullptr, plan.out()));
  for (int value = 1; value < 20; ++value) {
    desc.value.re = value;
    ASSERT_OK(sg_plan_run(plan, &any, nullptr));
    ASSERT_EQ(std::vector<float>(3, float(value)), fetch(y, 3));
    desc.value.re = -value;
    ASSERT_OK(sg_fill(context_, &desc, nullptr));
    ASSERT_EQ(std::vector<float>(3, -float(value)), fetch(y, 3));
  }
}

TEST_P(fill, wrong_calls_name_the_field) {
  const placed<double> y = place(std::vector<double>{1, 2, 3, 4});
  const sg_matrix good = {y, 2, 2, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  const auto bad = [&](const char *text, auto &&spoil) {
    sg_fill_desc desc = desc_of(good, 1);
    spoil(desc);
    refused(SG_STATUS_INVALID_ARGUMENT, text, desc);
  };
  bad("desc->y.data is NULL", [](sg_fill_desc &d) { d.y.data = nullptr; });
  bad("desc->y.dtype is 0", [](sg_fill_desc &d) { d.y.dtype = sg_dtype(0); });
  bad("desc->y.ld is 1", [](sg_fill_desc &d) { d.y.ld = 1; });
  bad("desc->y is -1 x 2", [](sg_fill_desc &d) { d.y.rows = -1; });
  bad("desc->y.reserved is 3", [](sg_fill_desc &d) { d.y.reserved = 3; });
  EXPECT_EQ((std::vector<double>{1, 2, 3, 4}), fetch(y, 4));
  const sg_fill_desc empty = desc_of({nullptr, 0, 5, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR}, 1);
  EXPECT_OK(sg_fill(context_, &empty, nullptr));
}

ON_EACH_DEVICE(fill);

}  // namespace
}  // namespace sg_test
