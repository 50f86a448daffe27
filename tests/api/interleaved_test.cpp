// SPDX-License-Identifier: Apache-2.0
// Operands whose bytes interleave: accepted if no element is shared, refused otherwise.
#include <cstring>
#include <random>
#include <set>

#include "support/harness.hpp"

namespace sg_test {
namespace {

class interleaved : public on_each_device {};

// Elements of a view, numbered from the start of the memory.
std::set<std::int64_t> elements_of(const sg_matrix &x, const double *memory, std::int64_t stride, std::int64_t batch) {
  std::set<std::int64_t> all;
  const std::int64_t first = static_cast<const double *>(x.data) - memory;
  const bool by_rows = x.layout == SG_LAYOUT_ROW_MAJOR;
  for (std::int64_t item = 0; item < batch; ++item)
    for (std::int64_t outer = 0; outer < (by_rows ? x.rows : x.cols); ++outer)
      for (std::int64_t inner = 0; inner < (by_rows ? x.cols : x.rows); ++inner)
        all.insert(first + item * stride + outer * x.ld + inner);
  return all;
}

TEST_P(interleaved, items_of_c_in_each_others_gaps) {
  double a = 2, b[6] = {1, 2, 3, 4, 5, 6}, c[14];
  std::fill(std::begin(c), std::end(c), -1);
  sg_gemm_desc d = SG_GEMM_DESC_INIT;
  const double column[3] = {1, 10, 100};
  d.a = {const_cast<double *>(column), 3, 1, 3, SG_DTYPE_F64, SG_LAYOUT_COLUMN_MAJOR};
  d.b = {b, 1, 2, 1, SG_DTYPE_F64, SG_LAYOUT_COLUMN_MAJOR};
  d.c = {c, 3, 2, 7, SG_DTYPE_F64, SG_LAYOUT_COLUMN_MAJOR};
  d.alpha.re = a;
  d.batch = 2, d.stride_b = 2, d.stride_c = 4;
  ASSERT_OK(sg_gemm(context_, &d, nullptr));
  const double expected[14] = {2, 20, 200, -1, 6, 60, 600, 4, 40, 400, -1, 8, 80, 800};
  for (int i = 0; i < 14; ++i) EXPECT_EQ(expected[i], c[i]) << i;
}

TEST_P(interleaved, items_of_a_and_c_alternate) {
  // A0 C0 A1 C1 A2 C2, each 2 x 2.
  std::vector<double> memory(6 * 4, 1);
  const double b[4] = {1, 2, 3, 4};
  sg_gemm_desc d = SG_GEMM_DESC_INIT;
  d.a = {memory.data(), 2, 2, 2, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  d.b = {const_cast<double *>(b), 2, 2, 2, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  d.c = {memory.data() + 4, 2, 2, 2, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  d.batch = 3, d.stride_a = d.stride_c = 8;
  ASSERT_OK(sg_gemm(context_, &d, nullptr));
  for (int i = 0; i < 24; ++i)
    EXPECT_EQ(i / 4 % 2 == 0 ? 1 : i % 2 == 0 ? 4 : 6, memory[static_cast<std::size_t>(i)]) << i;
}

// Two views of one memory with their own strides: accepted or refused as the sets of elements say.
TEST_P(interleaved, random_views_of_one_memory) {
  std::mt19937 random(7);
  const auto draw = [&](int lowest, int highest) {
    return std::uniform_int_distribution<int>(lowest, highest)(random);
  };
  int taken = 0, refused = 0;
  std::vector<double> memory(400, 1);
  const double b[1] = {3};
  for (int round = 0; round < 4000; ++round) {
    sg_gemm_desc d = SG_GEMM_DESC_INIT;
    const int rows = draw(1, 4), ld_a = draw(1, 9), ld_c = draw(1, 9), batch = draw(1, 4);
    d.a = {memory.data() + draw(0, 60), rows, 1, ld_a, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
    d.b = {const_cast<double *>(b), 1, 1, 1, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
    d.c = {memory.data() + draw(0, 60), rows, 1, ld_c, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
    d.batch = batch, d.stride_a = draw(0, 12), d.stride_c = draw(1, 12);
    const auto read = elements_of(d.a, memory.data(), d.stride_a, batch),
               written = elements_of(d.c, memory.data(), d.stride_c, batch);
    bool valid = static_cast<int>(written.size()) == rows * batch;  // no two items share an element
    for (const std::int64_t e : written) valid = valid && read.count(e) == 0;
    (valid ? taken : refused) += 1;
    const sg_status status = sg_gemm(context_, &d, nullptr);
    ASSERT_EQ(valid ? SG_STATUS_OK : SG_STATUS_INVALID_ARGUMENT, status)
        << sg_last_error_message() << " rows " << rows << " ld " << ld_a << ' ' << ld_c << " batch " << batch
        << " strides " << d.stride_a << ' ' << d.stride_c << " at " << static_cast<double *>(d.a.data) - memory.data()
        << ' ' << static_cast<double *>(d.c.data) - memory.data();
  }
  EXPECT_GT(taken, 500);
  EXPECT_GT(refused, 500);
}

// Each small C, accepted or refused as the set of its elements says. Of 2^40 items two that overlap are found at once.
TEST_P(interleaved, every_small_c) {
  std::vector<double> memory(200);
  sg_gemm_desc d = SG_GEMM_DESC_INIT;
  d.a.dtype = d.b.dtype = SG_DTYPE_F64, d.beta.re = 1;
  int taken = 0, refused = 0;
  for (std::int64_t rows = 1; rows <= 3; ++rows)
    for (std::int64_t ld = rows; ld <= 9; ++ld)
      for (std::int64_t cols = 1; cols <= 4; ++cols)
        for (std::int64_t stride = 1; stride <= 14; ++stride) {
          const std::int64_t batch = 2 + stride % 9;
          d.a.rows = d.c.rows = rows, d.b.cols = d.c.cols = cols, d.batch = batch, d.stride_c = stride;
          d.c = {memory.data(), rows, cols, ld, SG_DTYPE_F64, SG_LAYOUT_COLUMN_MAJOR};
          const bool valid = elements_of(d.c, memory.data(), stride, batch).size() == std::size_t(rows * cols * batch);
          (valid ? taken : refused) += 1;
          ASSERT_EQ(valid ? SG_STATUS_OK : SG_STATUS_INVALID_ARGUMENT, sg_gemm(context_, &d, nullptr))
              << rows << " x " << cols << " ld " << ld << " batch " << batch << " stride " << stride;
        }
  EXPECT_GT(taken, 300);
  EXPECT_GT(refused, 300);
  d.a.rows = d.c.rows = 3, d.b.cols = d.c.cols = 1000, d.c.ld = (std::int64_t{1} << 38) + 1;
  d.batch = std::int64_t{1} << 40, d.stride_c = 7;
  ASSERT_EQ(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context_, &d, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "would overlap")) << sg_last_error_message();
}

ON_EACH_DEVICE(interleaved);

}  // namespace
}  // namespace sg_test
