// SPDX-License-Identifier: Apache-2.0
// Products of every type under every op and layout, with every kind of scalar.
#include "support/gemm_case.hpp"
#include "support/harness.hpp"

namespace sg_test {
namespace {

struct type_pair {
  sg_dtype in, out;
};
constexpr type_pair all_types[] = {
    {SG_DTYPE_F64, SG_DTYPE_F64},   {SG_DTYPE_F32, SG_DTYPE_F32},  {SG_DTYPE_C64, SG_DTYPE_C64},
    {SG_DTYPE_C128, SG_DTYPE_C128}, {SG_DTYPE_F16, SG_DTYPE_F16},  {SG_DTYPE_F16, SG_DTYPE_F32},
    {SG_DTYPE_BF16, SG_DTYPE_BF16}, {SG_DTYPE_BF16, SG_DTYPE_F32}, {SG_DTYPE_I8, SG_DTYPE_I32},
};
constexpr sg_op ops[] = {SG_OP_N, SG_OP_T, SG_OP_C};

// Complex conjugation needs its operand in C's layout.
bool exists(const gemm_case &c) {
  return !is_complex(c.in) ||
         ((c.op_a != SG_OP_C || c.layout_a == c.layout_c) && (c.op_b != SG_OP_C || c.layout_b == c.layout_c));
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

TEST_P(gemm_types, every_op_and_layout) {
  for (const sg_op op_a : ops)
    for (const sg_op op_b : ops)
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

INSTANTIATE_TEST_SUITE_P(devices, gemm_types,
                         testing::Combine(testing::ValuesIn(devices_under_test()), testing::ValuesIn(all_types)),
                         [](const auto &info) {
                           const type_pair types = std::get<1>(info.param);
                           return test_name(std::string(std::get<0>(info.param)) + "_" + sg_dtype_name(types.in) + "_" +
                                            sg_dtype_name(types.out));
                         });

}  // namespace
}  // namespace sg_test
