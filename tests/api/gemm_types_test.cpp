// SPDX-License-Identifier: Apache-2.0
// GEMMs of every type under every op and layout, with every kind of scalar.
#include <cstring>

#include "support/gemm_case.hpp"
#include "support/harness.hpp"

namespace sg_test {
namespace {

struct type_pair {
  sg_dtype in, out;
};
constexpr type_pair all_types[] = {
    {SG_DTYPE_F64, SG_DTYPE_F64},     {SG_DTYPE_F32, SG_DTYPE_F32},     {SG_DTYPE_C64, SG_DTYPE_C64},
    {SG_DTYPE_C128, SG_DTYPE_C128},   {SG_DTYPE_F16, SG_DTYPE_F16},     {SG_DTYPE_F16, SG_DTYPE_F32},
    {SG_DTYPE_BF16, SG_DTYPE_BF16},   {SG_DTYPE_BF16, SG_DTYPE_F32},    {SG_DTYPE_I8, SG_DTYPE_I32},
    {SG_DTYPE_F8_E4M3, SG_DTYPE_F32}, {SG_DTYPE_F8_E4M3, SG_DTYPE_F16}, {SG_DTYPE_F8_E4M3, SG_DTYPE_BF16},
    {SG_DTYPE_F8_E5M2, SG_DTYPE_F32}, {SG_DTYPE_F8_E5M2, SG_DTYPE_F16}, {SG_DTYPE_F8_E5M2, SG_DTYPE_BF16},
};
constexpr sg_transpose ops[] = {SG_TRANSPOSE_N, SG_TRANSPOSE_T, SG_TRANSPOSE_C};

// Complex conjugation needs its operand in C's layout.
bool exists(const gemm_case &c) {
  return !is_complex(c.in) || ((c.op_a != SG_TRANSPOSE_C || c.layout_a == c.layout_c) &&
                               (c.op_b != SG_TRANSPOSE_C || c.layout_b == c.layout_c));
}

class gemm_types : public testing::TestWithParam<std::tuple<const char *, type_pair>> {
 protected:
  void SetUp() override {
    context_ = open_context(std::get<0>(GetParam()));
    case_.in = std::get<1>(GetParam()).in;
    case_.out = std::get<1>(GetParam()).out;
  }
  context context_;
  gemm_case case_;
};

// The memory of each operand ends before an unreadable page.
TEST_P(gemm_types, vectors_that_end_where_memory_does) {
  for (std::int64_t size = 1; size < 20; ++size)
    for (const std::int64_t depth : {1, 2, 5})
      for (const bool is_row : {false, true})
        for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
          for (const std::int64_t pad : {0, 2}) {
            gemm_case c = case_;
            c.m = is_row ? 1 : size;
            c.n = is_row ? size : 1;
            c.k = depth;
            c.op_a = c.op_b = op;
            c.pad = pad;
            ASSERT_EQ("", run_gemm_case(context_, c)) << c.text();
          }
}

TEST_P(gemm_types, every_op_and_layout) {
  for (const sg_transpose op_a : ops)
    for (const sg_transpose op_b : ops)
      for (int layouts = 0; layouts < 8; ++layouts)
        for (const std::int64_t pad : {0, 3}) {
          gemm_case c = case_;
          c.op_a = op_a;
          c.op_b = op_b;
          c.layout_a = static_cast<sg_layout>(layouts & 1);
          c.layout_b = static_cast<sg_layout>(layouts >> 1 & 1);
          c.layout_c = static_cast<sg_layout>(layouts >> 2);
          c.m = 5;
          c.n = 7;
          c.k = 6;
          c.pad = pad;
          c.alpha = c.out == SG_DTYPE_I32 ? sg_scalar{2, 0} : sg_scalar{1.5, 0.5};
          c.beta = {pad ? -1.0 : 0.0, 0};
          c.seed = static_cast<std::uint64_t>(layouts + 1);
          const std::string seen = run_gemm_case(context_, c);
          if (exists(c)) {
            ASSERT_EQ("", seen) << c.text();
          } else {
            ASSERT_NE(std::string::npos, seen.find("SG_STATUS_UNSUPPORTED")) << c.text() << ": " << seen;
          }
        }
}

TEST_P(gemm_types, every_class_of_scalars) {
  for (const double alpha : {0.0, 1.0, -1.0, 3.0})
    for (const double beta : {0.0, 1.0, -2.0})
      for (const double imaginary : {0.0, 2.0})
        for (const std::int64_t k : {0, 9}) {
          gemm_case c = case_;
          c.m = 17;
          c.n = 6;
          c.k = k;
          c.pad = 1;
          c.alpha = {alpha, imaginary};
          c.beta = {beta, is_complex(c.in) ? imaginary : 0.0};
          ASSERT_EQ("", run_gemm_case(context_, c)) << c.text();
        }
}

TEST_P(gemm_types, sums_of_integers_are_exact) {
  for (const std::int64_t k : {1, 2, 17, 64, 129}) {
    gemm_case c = case_;
    c.integers = true;
    c.m = 19;
    c.n = 23;
    c.k = k;
    c.pad = 2;
    c.alpha = {2, 0};
    c.beta = {-1, 0};
    ASSERT_EQ("", run_gemm_case(context_, c)) << c.text();
  }
}

// Widths of vectors and of tiles, each with its neighbours.
TEST_P(gemm_types, sizes_around_every_edge) {
  constexpr std::int64_t edges[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 96, 127, 128, 129};
  random_source random(11);
  const auto edge = [&] { return edges[random.below(std::size(edges))]; };
  for (int i = 0; i < 60; ++i) {
    gemm_case c = case_;
    c.m = edge();
    c.n = edge();
    c.k = edge();
    c.op_a = ops[random.below(2)];
    c.op_b = ops[random.below(2)];
    c.layout_a = static_cast<sg_layout>(random.below(2));
    c.layout_b = static_cast<sg_layout>(random.below(2));
    c.layout_c = static_cast<sg_layout>(random.below(2));
    c.pad = random.below(2) * 5;
    c.beta = {static_cast<double>(random.below(3) - 1), 0};
    c.seed = random.next();
    ASSERT_EQ("", run_gemm_case(context_, c)) << c.text();
  }
}

// Large GEMMs of short types use a tiled kernel of their own on processors with AMX: several tiles and odd remainders
// of each dimension, not shared among cores. Integers, whose result in f64 is exact.
class gemm_tiles : public testing::Test {
 protected:
  static constexpr std::int64_t pad = 3;
  std::int64_t m = 530, n = 260, k = 3900;

  template <class In, class Out>
  void expect_exact(sg_dtype in, sg_dtype out, sg_transpose op_a, sg_transpose op_b, double alpha, double beta,
                    In (*in_of)(int), Out (*out_of)(int), int range) {
    random_source random(7);
    const auto numbers = [&](std::int64_t count, int least, int most) {
      std::vector<int> x(static_cast<std::size_t>(count));
      for (int &each : x) each = least + static_cast<int>(random.below(static_cast<std::size_t>(most - least + 1)));
      return x;
    };
    const bool a_turned = op_a != SG_TRANSPOSE_N, b_turned = op_b != SG_TRANSPOSE_N;
    const std::int64_t a_rows = a_turned ? k : m, a_cols = a_turned ? m : k, b_rows = b_turned ? n : k,
                       b_cols = b_turned ? k : n;
    const auto a = numbers(a_rows * (a_cols + pad), -range - 1, range),
               b = numbers(b_rows * (b_cols + pad), -range, range), c = numbers(m * (n + pad), -2, 2);
    const auto as = [](const std::vector<int> &x, auto *convert) {
      std::vector<decltype(convert(0))> made;
      for (const int each : x) made.push_back(convert(each));
      return made;
    };
    const auto multiply = [&](auto &left, auto &right, auto &result, sg_dtype of, sg_dtype to) {
      sg_gemm_desc desc = SG_GEMM_DESC_INIT;
      desc.a = {left.data(), a_rows, a_cols, a_cols + pad, of, SG_LAYOUT_ROW_MAJOR};
      desc.b = {right.data(), b_rows, b_cols, b_cols + pad, of, SG_LAYOUT_ROW_MAJOR};
      desc.c = {result.data(), m, n, n + pad, to, SG_LAYOUT_ROW_MAJOR};
      desc.op_a = op_a;
      desc.op_b = op_b;
      desc.alpha.re = alpha;
      desc.beta.re = beta;
      sg_plan_options whole = SG_PLAN_OPTIONS_INIT;
      whole.split = SG_SPLIT_NONE;
      sg_submit submit = SG_SUBMIT_INIT;
      submit.plan = &whole;
      ASSERT_OK(sg_gemm(on_, &desc, &submit));
    };
    double (*const f64_of)(int) = [](int x) { return static_cast<double>(x); };
    auto a64 = as(a, f64_of), b64 = as(b, f64_of), c64 = as(c, f64_of);
    multiply(a64, b64, c64, SG_DTYPE_F64, SG_DTYPE_F64);
    auto given_a = as(a, in_of), given_b = as(b, in_of);
    auto result = as(c, out_of);
    multiply(given_a, given_b, result, in, out);
    for (std::size_t i = 0; i < result.size(); ++i)
      ASSERT_EQ(out_of(static_cast<int>(c64[i])), result[i]) << "element " << i << " of " << n + pad << " a row";
  }
  // Of up to 256 the upper half of an f32 is all of it.
  static std::uint16_t bf16_of(int x) {
    const auto wide = static_cast<float>(x);
    std::uint32_t bits;
    std::memcpy(&bits, &wide, sizeof bits);
    return static_cast<std::uint16_t>(bits >> 16);
  }
  static float f32_of(int x) { return static_cast<float>(x); }
  static std::int8_t i8_of(int x) { return static_cast<std::int8_t>(x); }
  static std::int32_t i32_of(int x) { return x; }

  const context on_ = open_context("cpu");
};

TEST_F(gemm_tiles, of_bf16) {
  expect_exact(SG_DTYPE_BF16, SG_DTYPE_F32, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 1, 0, bf16_of, f32_of, 4);
  expect_exact(SG_DTYPE_BF16, SG_DTYPE_F32, SG_TRANSPOSE_T, SG_TRANSPOSE_N, 2, -1, bf16_of, f32_of, 4);
  expect_exact(SG_DTYPE_BF16, SG_DTYPE_F32, SG_TRANSPOSE_T, SG_TRANSPOSE_T, 1, 1, bf16_of, f32_of, 4);
}

// So many products that a job is computed in parts, between which it can be cancelled.
TEST_F(gemm_tiles, of_f32_in_parts) {
  m = n = k = 1300;
  expect_exact(SG_DTYPE_F32, SG_DTYPE_F32, SG_TRANSPOSE_T, SG_TRANSPOSE_N, 2, -1, f32_of, f32_of, 4);
}

// A column is a row of the blocks that cores compute: more of them than a worker keeps packed.
TEST_F(gemm_tiles, of_more_rows_than_are_kept_packed) {
  m = 260;
  n = 2300;
  expect_exact(SG_DTYPE_BF16, SG_DTYPE_F32, SG_TRANSPOSE_N, SG_TRANSPOSE_T, 1, 1, bf16_of, f32_of, 4);
  m = 530;  // computed in f32 where the processor does not multiply bf16
  n = 7000;
  k = 600;
  expect_exact(SG_DTYPE_BF16, SG_DTYPE_F32, SG_TRANSPOSE_T, SG_TRANSPOSE_N, 1, 0, bf16_of, f32_of, 4);
}

TEST_F(gemm_tiles, of_one_row) {
  m = 256;
  n = 1100;
  expect_exact(SG_DTYPE_BF16, SG_DTYPE_F32, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 1, 1, bf16_of, f32_of, 4);
  expect_exact(SG_DTYPE_I8, SG_DTYPE_I32, SG_TRANSPOSE_T, SG_TRANSPOSE_N, 1, 0, i8_of, i32_of, 127);
}

TEST_F(gemm_tiles, too_deep_to_be_kept_packed) {
  m = 530;
  n = 280;
  k = 33'000;
  expect_exact(SG_DTYPE_BF16, SG_DTYPE_F32, SG_TRANSPOSE_T, SG_TRANSPOSE_N, 1, 0, bf16_of, f32_of, 4);
}

// Whole numbers up to 8 are e4m3's and e5m2's.
TEST_F(gemm_tiles, of_f8) {
  const auto e4m3_of = [](int x) { return encode_8(SG_DTYPE_F8_E4M3, x); };
  const auto e5m2_of = [](int x) { return encode_8(SG_DTYPE_F8_E5M2, x); };
  expect_exact<std::uint8_t>(SG_DTYPE_F8_E4M3, SG_DTYPE_F32, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 1, 0, e4m3_of, f32_of, 4);
  expect_exact<std::uint8_t>(SG_DTYPE_F8_E4M3, SG_DTYPE_F32, SG_TRANSPOSE_T, SG_TRANSPOSE_N, 2, -1, e4m3_of, f32_of, 4);
  expect_exact<std::uint8_t>(SG_DTYPE_F8_E5M2, SG_DTYPE_F32, SG_TRANSPOSE_T, SG_TRANSPOSE_T, 1, 1, e5m2_of, f32_of, 3);
}

// Sums reach 2^26, of which f32 would lose the last bits.
TEST_F(gemm_tiles, of_i8) {
  expect_exact(SG_DTYPE_I8, SG_DTYPE_I32, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 1, 0, i8_of, i32_of, 127);
  expect_exact(SG_DTYPE_I8, SG_DTYPE_I32, SG_TRANSPOSE_N, SG_TRANSPOSE_T, 1, 1, i8_of, i32_of, 127);
  expect_exact(SG_DTYPE_I8, SG_DTYPE_I32, SG_TRANSPOSE_T, SG_TRANSPOSE_T, -2, 3, i8_of, i32_of, 127);
}

INSTANTIATE_TEST_SUITE_P(devices, gemm_types,
                         testing::Combine(testing::ValuesIn(devices_under_test()), testing::ValuesIn(all_types)),
                         [](const auto &info) {
                           const type_pair types = std::get<1>(info.param);
                           return test_name(std::string(std::get<0>(info.param)) + "_" + sg_dtype_name(types.in) + "_" +
                                            sg_dtype_name(types.out));
                         });

}  // namespace
}  // namespace sg_test
