// SPDX-License-Identifier: Apache-2.0
// BLAS semantics: what is read, what is skipped, how NaN and Inf propagate, and that f32 stays f32.
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>

#include "support/gemm_case.hpp"
#include "support/guarded.hpp"
#include "support/harness.hpp"

namespace sg_test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

class gemm_rules : public on_each_device {
 protected:
  // Fresh operands for a GEMM of n x n matrices: A all 1, B all 1, C as given.
  void reset(double c) {
    a_.assign(n * n, 1.0);
    b_.assign(n * n, 1.0);
    c_.assign(n * n, c);
  }
  void multiply(double alpha, double beta, sg_split split = SG_SPLIT_AUTO) {
    sg_plan_options options = SG_PLAN_OPTIONS_INIT;
    options.split = split;
    options.parts = split == SG_SPLIT_AUTO || split == SG_SPLIT_NONE ? 0 : 3;
    sg_submit submit = SG_SUBMIT_INIT;
    submit.plan = &options;
    sg_gemm_desc desc = make_gemm(a_.data(), b_.data(), c_.data(), n, n, n);
    desc.alpha.re = alpha;
    desc.beta.re = beta;
    EXPECT_OK(sg_gemm(context_, &desc, &submit));
  }
  static constexpr int n = 24;
  std::vector<double> a_, b_, c_;
};
constexpr sg_split splits[] = {SG_SPLIT_AUTO, SG_SPLIT_NONE, SG_SPLIT_M, SG_SPLIT_N, SG_SPLIT_K};

TEST_P(gemm_rules, beta_zero_never_reads_c) {
  for (const sg_split split : splits)
    for (const double poison : {nan, inf}) {
      reset(poison);
      multiply(2, 0, split);
      for (const double x : c_) ASSERT_EQ(2.0 * n, x);
    }
}

template <class T>
sg_gemm_desc one_by_one(const T *a, const T *b, T *c, sg_dtype type) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = {const_cast<T *>(a), 1, 1, 0, type, SG_LAYOUT_ROW_MAJOR};
  desc.b = {const_cast<T *>(b), 1, 1, 0, type, SG_LAYOUT_ROW_MAJOR};
  desc.c = {c, 1, 1, 0, type, SG_LAYOUT_ROW_MAJOR};
  return desc;
}

TEST_P(gemm_rules, scalars_are_rounded_to_the_accumulator_before_the_rules_apply) {
  float a = std::numeric_limits<float>::quiet_NaN(), b = 1, c = 1;
  sg_gemm_desc desc = one_by_one(&a, &b, &c, SG_DTYPE_F32);
  desc.alpha.re = 1e-300;
  desc.beta.re = 1;
  EXPECT_OK(sg_gemm(context_, &desc, nullptr));
  EXPECT_EQ(1, c) << "alpha is 0 in f32: A is not read";
  c = std::numeric_limits<float>::quiet_NaN(), a = 3;
  desc.alpha.re = 1 + 1e-10;
  desc.beta.re = -1e-300;
  EXPECT_OK(sg_gemm(context_, &desc, nullptr));
  EXPECT_EQ(3, c) << "beta is 0 in f32: C is not read";

  double wide_a = 3, wide_b = 1, wide_c = 0;
  sg_gemm_desc wide = one_by_one(&wide_a, &wide_b, &wide_c, SG_DTYPE_F64);
  wide.alpha.re = 1e-300;
  EXPECT_OK(sg_gemm(context_, &wide, nullptr));
  EXPECT_EQ(3e-300, wide_c);
}

TEST_P(gemm_rules, scalars_beyond_the_accumulators_range_are_refused) {
  float a = 1, b = 1, c = 5;
  sg_gemm_desc desc = one_by_one(&a, &b, &c, SG_DTYPE_F32);
  desc.alpha.re = 1e40;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context_, &desc, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "desc->alpha.re is 1e+40")) << sg_last_error_message();
  desc.alpha.re = 1;
  desc.beta.re = -1e39;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context_, &desc, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "desc->beta.re is -1e+39")) << sg_last_error_message();
  desc.beta.re = 0;
  desc.alpha.re = inf;
  EXPECT_OK(sg_gemm(context_, &desc, nullptr));
  EXPECT_EQ(std::numeric_limits<float>::infinity(), c);
  std::complex<float> za = 1, zb = 1, zc = 5;
  sg_gemm_desc complex = one_by_one(&za, &zb, &zc, SG_DTYPE_C64);
  complex.alpha.im = 1e40;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context_, &complex, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "desc->alpha.im is 1e+40")) << sg_last_error_message();
}

// Of a size that suits tensor cores.
TEST_P(gemm_rules, integers_beyond_those_of_f32_stay_exact) {
  constexpr int size = 16;
  const std::vector<std::int8_t> a(size * size, 1), b(size * size, 1);
  for (const double alpha : {1.0, 33554433.0})
    for (const double beta : {0.0, 1.0, 3.0, 2147483647.0}) {
      std::vector<std::int32_t> c(size * size, 2147483629);
      sg_gemm_desc d = SG_GEMM_DESC_INIT;
      d.a = {const_cast<std::int8_t *>(a.data()), size, size, 0, SG_DTYPE_I8, SG_LAYOUT_ROW_MAJOR};
      d.b = {const_cast<std::int8_t *>(b.data()), size, size, 0, SG_DTYPE_I8, SG_LAYOUT_COLUMN_MAJOR};
      d.c = {c.data(), size, size, 0, SG_DTYPE_I32, SG_LAYOUT_COLUMN_MAJOR};
      d.alpha.re = alpha, d.beta.re = beta;
      ASSERT_OK(sg_gemm(context_, &d, nullptr));
      const auto expected = static_cast<std::int32_t>(static_cast<std::uint32_t>(alpha) * 16u +
                                                      static_cast<std::uint32_t>(beta) * 2147483629u);
      for (const std::int32_t x : c) ASSERT_EQ(expected, x) << "alpha " << alpha << " beta " << beta;
    }
}

TEST_P(gemm_rules, integer_scalars_are_of_32_bits_and_sums_wrap) {
  std::int8_t a[2] = {1, 0}, b[2] = {1, 0};
  std::int32_t c = 0;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = {a, 1, 2, 0, SG_DTYPE_I8, SG_LAYOUT_ROW_MAJOR};
  desc.b = {b, 2, 1, 0, SG_DTYPE_I8, SG_LAYOUT_ROW_MAJOR};
  desc.c = {&c, 1, 1, 0, SG_DTYPE_I32, SG_LAYOUT_ROW_MAJOR};
  desc.alpha.re = 2147483648.0;
  EXPECT_STATUS(SG_STATUS_INVALID_ARGUMENT, sg_gemm(context_, &desc, nullptr));
  EXPECT_NE(nullptr, std::strstr(sg_last_error_message(), "desc->alpha.re is 2147483648")) << sg_last_error_message();
  desc.alpha.re = -2147483648.0;
  EXPECT_OK(sg_gemm(context_, &desc, nullptr));
  EXPECT_EQ(std::numeric_limits<std::int32_t>::min(), c);
  desc.alpha.re = 2147483647.0;
  a[0] = 2;
  EXPECT_OK(sg_gemm(context_, &desc, nullptr));
  EXPECT_EQ(-2, c);
}

TEST_P(gemm_rules, nan_and_inf_of_a_and_b_propagate) {
  for (const sg_split split : splits)
    for (const double poison : {nan, inf}) {
      reset(0);
      a_[3 * n + 5] = poison;
      multiply(1, 0, split);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
          ASSERT_EQ(i != 3, std::isfinite(c_[static_cast<std::size_t>(i * n + j)])) << i << ' ' << j << ' ' << split;
    }
}

TEST_P(gemm_rules, zero_times_nan_is_nan) {
  for (const sg_split split : splits) {
    reset(0);
    a_.assign(n * n, 0.0);
    b_[7] = nan;
    multiply(1, 0, split);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        ASSERT_EQ(j == 7, std::isnan(c_[static_cast<std::size_t>(i * n + j)])) << i << ' ' << j << ' ' << split;
  }
}

TEST_P(gemm_rules, infinities_cancel_into_nan) {
  reset(0);
  a_[0] = inf;
  a_[1] = -inf;
  multiply(1, 0);
  for (int j = 0; j < n; ++j) ASSERT_TRUE(std::isnan(c_[static_cast<std::size_t>(j)]));
}

TEST_P(gemm_rules, nan_of_c_propagates_when_beta_is_not_zero) {
  for (const sg_split split : splits)
    for (const double alpha : {0.0, 1.0}) {
      reset(1);
      c_[2 * n + 2] = nan;
      multiply(alpha, 0.5, split);
      for (int i = 0; i < n * n; ++i) ASSERT_EQ(i == 2 * n + 2, std::isnan(c_[static_cast<std::size_t>(i)])) << split;
    }
}

TEST_P(gemm_rules, alpha_zero_and_beta_one_change_nothing) {
  reset(0);
  for (int i = 0; i < n * n; ++i) c_[static_cast<std::size_t>(i)] = i % 7 == 0 ? nan : i;
  const std::vector<double> before = c_;
  multiply(0, 1);
  EXPECT_EQ(0, std::memcmp(before.data(), c_.data(), before.size() * sizeof(double)));
}

// A and B are not even mapped readable: alpha == 0 and k == 0 must not look at them.
TEST_P(gemm_rules, operands_that_are_not_needed_are_not_read) {
  guarded a(n * n * sizeof(double)), b(n * n * sizeof(double));
  a.forbid();
  b.forbid();
  for (const double beta : {0.0, 1.0, 2.0})
    for (const bool empty : {false, true}) {
      std::vector<double> c(n * n, 5.0);
      sg_gemm_desc desc = make_gemm(reinterpret_cast<double *>(a.data()), reinterpret_cast<double *>(b.data()),
                                    c.data(), n, n, empty ? 0 : n);
      desc.alpha.re = empty ? 1.0 : 0.0;
      desc.beta.re = beta;
      ASSERT_OK(sg_gemm(context_, &desc, nullptr));
      for (const double x : c) ASSERT_EQ(5.0 * beta, x);
    }
}

// An empty result reads and writes nothing: no pointer is needed.
TEST_P(gemm_rules, empty_results_succeed_without_memory) {
  for (const int empty : {0, 1}) {
    sg_gemm_desc desc = make_gemm(nullptr, nullptr, nullptr, empty ? 4 : 0, empty ? 0 : 4, 3);
    std::vector<double> kept(12, 1.0);
    (empty ? desc.a : desc.b).data = kept.data();
    ASSERT_OK(sg_gemm(context_, &desc, nullptr));
    for (const double x : kept) ASSERT_EQ(1.0, x);
  }
}

// Every operand touches an unreadable page, at its end or at its start, in types whose kernels like to read ahead.
TEST_P(gemm_rules, nothing_outside_the_operands_is_touched) {
  for (const flush where : {flush::to_end, flush::to_start})
    for (const sg_dtype type : {SG_DTYPE_F32, SG_DTYPE_F64, SG_DTYPE_BF16, SG_DTYPE_I8, SG_DTYPE_F8_E4M3, SG_DTYPE_C64})
      for (const std::int64_t m : {1, 3, 16, 47})
        for (const std::int64_t k : {1, 5, 32})
          for (const int layout : {0, 1}) {
            const sg_dtype out = natural_result(type);
            const std::int64_t n = m + 2, in_size = sg_dtype_size(type), out_size = sg_dtype_size(out);
            guarded a(static_cast<std::size_t>(m * k * in_size), where),
                b(static_cast<std::size_t>(k * n * in_size), where),
                c(static_cast<std::size_t>(m * n * out_size), where);
            sg_gemm_desc desc = SG_GEMM_DESC_INIT;
            const auto l = static_cast<sg_layout>(layout);
            desc.a = {a.data(), m, k, 0, type, l};
            desc.b = {b.data(), k, n, 0, type, l};
            desc.c = {c.data(), m, n, 0, out, l};
            for (std::int64_t i = 0; i < m * k; ++i) store(type, a.data() + i * in_size, 1);
            for (std::int64_t i = 0; i < k * n; ++i) store(type, b.data() + i * in_size, 2);
            ASSERT_OK(sg_gemm(context_, &desc, nullptr));
            for (std::int64_t i = 0; i < m * n; ++i)
              ASSERT_EQ(2.0L * k, load(out, c.data() + i * out_size).real()) << sg_dtype_name(type) << m << ' ' << k;
          }
}

// Rounding an operand to tf32, bf16 or f16 on the way would lose the lowest bits of these.
TEST_P(gemm_rules, f32_is_computed_in_f32) {
  constexpr int m = 64, n = 48, k = 96;
  random_source random(5);
  std::vector<float> a(m * k), b(k * n), c(m * n);
  for (float &x : a) x = static_cast<float>(2049 + 2 * random.below(1024));
  for (float &x : b) x = static_cast<float>(random.below(3) - 1);
  for (const sg_split split : splits)
    for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T}) {
      sg_plan_options options = SG_PLAN_OPTIONS_INIT;
      options.split = split;
      sg_submit submit = SG_SUBMIT_INIT;
      submit.plan = &options;
      job handle;
      ASSERT_OK(sg_sgemm_async(context_, SG_LAYOUT_COLUMN_MAJOR, op, SG_TRANSPOSE_N, m, n, k, 1.0f, a.data(),
                               op == SG_TRANSPOSE_N ? m : k, b.data(), k, 0.0f, c.data(), m, &submit, handle.out()));
      ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < m; ++i) {
          std::int64_t exact = 0;
          for (int l = 0; l < k; ++l) {
            const float x =
                op == SG_TRANSPOSE_N ? a[static_cast<std::size_t>(i + l * m)] : a[static_cast<std::size_t>(l + i * k)];
            exact += static_cast<std::int64_t>(x) * static_cast<std::int64_t>(b[static_cast<std::size_t>(l + j * k)]);
          }
          ASSERT_EQ(static_cast<float>(exact), c[static_cast<std::size_t>(i + j * m)]) << i << ' ' << j;
        }
    }
}

// i8 sums wrap in 32 bits as two's complement does, and never saturate on the way.
TEST_P(gemm_rules, i8_extremes) {
  constexpr int k = 140000;  // 128 * 128 * k is beyond 2^31
  const std::vector<std::int8_t> low(k, -128), high(k, 127);
  const auto dot = [&](const std::vector<std::int8_t> &x, const std::vector<std::int8_t> &y) {
    std::int32_t c[4] = {};
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.a = {const_cast<std::int8_t *>(x.data()), 1, k, 0, SG_DTYPE_I8, SG_LAYOUT_ROW_MAJOR};
    desc.b = {const_cast<std::int8_t *>(y.data()), k, 1, 0, SG_DTYPE_I8, SG_LAYOUT_ROW_MAJOR};
    desc.c = {c, 1, 1, 0, SG_DTYPE_I32, SG_LAYOUT_ROW_MAJOR};
    EXPECT_OK(sg_gemm(context_, &desc, nullptr));
    return c[0];
  };
  const auto wrapped = [](std::int64_t sum) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(sum)); };
  EXPECT_EQ(wrapped(16384ll * k), dot(low, low));
  EXPECT_EQ(wrapped(-16256ll * k), dot(low, high));
  EXPECT_EQ(wrapped(16129ll * k), dot(high, high));
}

// alpha and beta times integers keep their low 32 bits, also where no double holds the result.
TEST_P(gemm_rules, i8_scalars_times_sums_wrap) {
  std::int8_t a = 127, b = 127;
  std::int32_t c = -2147483647;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = {&a, 1, 1, 0, SG_DTYPE_I8, SG_LAYOUT_ROW_MAJOR};
  desc.b = {&b, 1, 1, 0, SG_DTYPE_I8, SG_LAYOUT_ROW_MAJOR};
  desc.c = {&c, 1, 1, 0, SG_DTYPE_I32, SG_LAYOUT_ROW_MAJOR};
  desc.beta = {-2147483647, 0};  // (2^31 - 1)^2 is 1 modulo 2^32
  EXPECT_OK(sg_gemm(context_, &desc, nullptr));
  EXPECT_EQ(16129 + 1, c);
  desc.alpha = {2147483647, 0};  // -1 modulo 2^31
  desc.beta = {0, 0};
  EXPECT_OK(sg_gemm(context_, &desc, nullptr));
  EXPECT_EQ(2147483647 - 16128, c);
}

// Leading dimensions far beyond 32 bits of bytes, and beyond 2^31 elements, on memory that is never backed.
TEST_P(gemm_rules, leading_dimensions_of_2_to_the_30_and_more) {
  for (const std::int64_t ld : {std::int64_t{1} << 30, (std::int64_t{1} << 31) + 5}) {
    constexpr std::int64_t rows = 3, cols = 4;
    const std::size_t bytes = static_cast<std::size_t>(((rows - 1) * ld + cols)) * sizeof(float);
    const auto unbacked = [&] {
      void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      return memory == MAP_FAILED ? nullptr : static_cast<float *>(memory);
    };
    float *const a = unbacked(), *const c = unbacked();
    float b[cols * cols] = {};
    ASSERT_TRUE(a && c);
    for (std::int64_t j = 0; j < cols; ++j) b[j * cols + (j + 1) % cols] = 1;  // rotates the columns
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) a[i * ld + j] = static_cast<float>(10 * i + j + 1);
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.a = {a, rows, cols, ld, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    desc.b = {b, cols, cols, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    desc.c = {c, rows, cols, ld, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    EXPECT_OK(sg_gemm(context_, &desc, nullptr));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) EXPECT_EQ(a[i * ld + j], c[i * ld + (j + 1) % cols]) << ld;
    munmap(a, bytes);
    munmap(c, bytes);
  }
}

TEST_P(gemm_rules, the_same_call_gives_the_same_bits) {
  random_source random(3);
  for (const auto &[m, n, k] : {std::tuple{200, 180, 220}, std::tuple{8, 8, 5000}, std::tuple{1000, 3, 64}}) {
    std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n));
    for (float &x : a) x = static_cast<float>(random.real());
    for (float &x : b) x = static_cast<float>(random.real());
    std::vector<std::vector<float>> results(6, std::vector<float>(static_cast<std::size_t>(m * n)));
    std::vector<job> jobs(results.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      ASSERT_OK(sg_sgemm_async(context_, SG_LAYOUT_ROW_MAJOR, SG_TRANSPOSE_N, SG_TRANSPOSE_N, m, n, k, 1.0f, a.data(),
                               k, b.data(), n, 0.0f, results[i].data(), n, nullptr, jobs[i].out()));
    for (const job &j : jobs) ASSERT_OK(sg_job_wait(j, SG_FOREVER, nullptr));
    for (const auto &result : results)
      ASSERT_EQ(0, std::memcmp(result.data(), results[0].data(), result.size() * sizeof(float))) << m;
  }
}

TEST_P(gemm_rules, blas_shaped_calls_agree_with_the_descriptor) {
  for (const sg_layout layout : {SG_LAYOUT_ROW_MAJOR, SG_LAYOUT_COLUMN_MAJOR}) {
    reset(1);
    random_source random(9);
    for (double &x : a_) x = random.below(100);
    for (double &x : b_) x = random.below(100);
    std::vector<double> other = c_;
    sg_gemm_desc desc = make_gemm(a_.data(), b_.data(), c_.data(), n, n, n);
    desc.a.layout = desc.b.layout = desc.c.layout = layout;
    desc.op_b = SG_TRANSPOSE_T;
    desc.alpha.re = 2;
    desc.beta.re = 3;
    ASSERT_OK(sg_gemm(context_, &desc, nullptr));
    job handle;
    ASSERT_OK(sg_dgemm_async(context_, layout, SG_TRANSPOSE_N, SG_TRANSPOSE_T, n, n, n, 2, a_.data(), n, b_.data(), n,
                             3, other.data(), n, nullptr, handle.out()));
    ASSERT_OK(sg_job_wait(handle, SG_FOREVER, nullptr));
    EXPECT_EQ(c_, other);
  }
}

ON_EACH_DEVICE(gemm_rules);

}  // namespace
}  // namespace sg_test
