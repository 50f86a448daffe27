// SPDX-License-Identifier: Apache-2.0
// f32 GEMMs whose operands may be split into short parts: 3xtf32 and bf16x3. Devices that do not split them (cpu, sim)
// compute in f32, for which every bound here holds too.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gemm_case.hpp"

namespace sg::test {
namespace {

struct splitting {
  sg_compute compute;
  format part;    // two of these parts hold a number
  real near_f32;  // the allowed error, relative to the product of the magnitudes
};
constexpr splitting splittings[] = {{SG_COMPUTE_3XTF32, {11, -126, 127}, 0x1p-18L},
                                    {SG_COMPUTE_BF16X3, bf16_format, 0x1p-15L}};

class short_compute : public conformance {
 protected:
  // GPUs split only large GEMMs of suitable sizes; other devices run smaller ones to save time.
  bool is_gpu() const { return GetParam().rfind("cuda", 0) == 0; }
  gemm_spec shape(std::int64_t k, sg_compute compute) const {
    const std::int64_t side = is_gpu() ? 1032 : 70;
    return {.m = side, .n = side, .k = k, .compute = compute};
  }
  std::vector<std::int64_t> depths(std::vector<std::int64_t> all) const {
    if (!is_gpu()) all.pop_back();
    return all;
  }
  void run(gemm_case &x) { ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK) << x.shape.text(); }

  stream stream_{dev()};
};

real op_a(gemm_case &x, std::int64_t i, std::int64_t l) {
  return (x.shape.op_a == SG_TRANSPOSE_N ? x.a.get(0, i, l) : x.a.get(0, l, i)).real();
}
real op_b(gemm_case &x, std::int64_t l, std::int64_t j) {
  return (x.shape.op_b == SG_TRANSPOSE_N ? x.b.get(0, l, j) : x.b.get(0, j, l)).real();
}

// The largest errors, relative to the product of the magnitudes, over some elements: the device's, and that of operands
// rounded to one part each.
struct errors {
  real seen = 0, of_one_part = 0;
};
errors errors_of(gemm_case &x, const format &part) {
  errors worst;
  for (std::int64_t i = 0; i < x.shape.m; i += x.shape.m / 9)
    for (std::int64_t j = 0; j < x.shape.n; j += x.shape.n / 7) {
      real exact = 0, rounded = 0, magnitude = 0;
      for (std::int64_t l = 0; l < x.shape.k; ++l) {
        const real a = op_a(x, i, l), b = op_b(x, l, j);
        exact += a * b;
        rounded += round_to(part, a) * round_to(part, b);
        magnitude += std::abs(a * b);
      }
      const real error = std::abs(x.c.get(0, i, j).real() - exact) / magnitude;
      if (!(error <= worst.seen)) worst.seen = std::isnan(error) ? std::numeric_limits<real>::infinity() : error;
      worst.of_one_part = std::max(worst.of_one_part, std::abs(rounded - exact) / magnitude);
    }
  return worst;
}

TEST_P(short_compute, random_sums_are_near_f32) {
  for (const splitting &s : splittings)
    for (const std::int64_t k : depths({130, 1300, 4099}))
      for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T}) {
        gemm_spec wanted = shape(k, s.compute);
        wanted.op_a = wanted.op_b = op;
        gemm_case x(wanted, static_cast<std::uint64_t>(k));
        run(x);
        if (HasFatalFailure()) return;
        EXPECT_LE(errors_of(x, s.part).seen, s.near_f32) << x.shape.text();
      }
}

// C at addresses that allow vector stores, and at addresses that do not, so that a GPU does not split; the gaps between
// columns keep their bytes.
TEST_P(short_compute, scalars_and_gaps_between_columns) {
  for (const splitting &s : splittings)
    for (const std::int64_t aligned : {0, 1}) {
      gemm_spec wanted = shape(s.compute == SG_COMPUTE_3XTF32 ? 530 : 1100, s.compute);  // larger than one block
      wanted.gap = aligned ? 8 : 3;
      wanted.op_a = aligned ? SG_TRANSPOSE_T : SG_TRANSPOSE_N;
      wanted.alpha = {-1.5, 0}, wanted.beta = {0.5, 0};
      gemm_case x(wanted, 7);
      host_operand before = x.c;
      run(x);
      if (HasFatalFailure()) return;
      for (std::int64_t j = 0; j < wanted.n; j += wanted.n / 7) {
        for (std::int64_t i = 0; i < wanted.m; i += wanted.m / 9) {
          real sum = 0, magnitude = 0;
          for (std::int64_t l = 0; l < wanted.k; ++l) {
            sum += op_a(x, i, l) * op_b(x, l, j);
            magnitude += std::abs(op_a(x, i, l) * op_b(x, l, j));
          }
          const real old = before.get(0, i, j).real(), exact = -1.5L * sum + 0.5L * old;
          ASSERT_LE(std::abs(x.c.get(0, i, j).real() - exact), 1.5L * s.near_f32 * magnitude + 0x1p-22L * std::abs(old))
              << wanted.text() << " at " << i << ", " << j;
        }
        const auto gap_at = static_cast<std::size_t>((j * x.c.ld + wanted.m) * 4);
        for (std::size_t byte = 0; byte < static_cast<std::size_t>(wanted.gap) * 4; ++byte)
          ASSERT_EQ(x.c.bytes[gap_at + byte], before.bytes[gap_at + byte]) << wanted.text() << " behind column " << j;
      }
    }
}

// Every operand is almost half a unit above a value of one part, so that errors do not average out over the depth.
TEST_P(short_compute, long_sums_lose_a_tenth_of_what_one_part_loses) {
  for (const splitting &s : splittings)
    for (const std::int64_t k : depths({512, 4099})) {
      gemm_case x(shape(k, s.compute));
      std::mt19937_64 random(11);
      const int steps = 1 << (s.part.precision - 1);
      const auto irregular = [&] {
        return 1 + (real(random() % static_cast<std::uint64_t>(steps)) + real(0.4375L)) / steps;
      };
      for (host_operand *operand : {&x.a, &x.b})
        for (std::int64_t j = 0; j < operand->cols; ++j)
          for (std::int64_t i = 0; i < operand->rows; ++i) operand->set(0, i, j, irregular());
      run(x);
      if (HasFatalFailure()) return;
      const errors worst = errors_of(x, s.part);
      EXPECT_GT(worst.of_one_part, std::ldexp(real(0.5L), -s.part.precision))
          << "the operands should have irregular padding";
      EXPECT_LE(worst.seen, worst.of_one_part / 10) << x.shape.text();
    }
}

// Two parts hold numbers of so many bits exactly, whatever their scale: times -1, 0 and 1 no bit is lost.
TEST_P(short_compute, every_scale_is_exact) {
  for (const splitting &s : splittings) {
    gemm_case x(shape(300, s.compute));
    std::mt19937_64 random(3);
    const int bits = std::min(15, 2 * s.part.precision - 1);  // sums of 300 fit into f32
    const auto scale_of = [](std::int64_t line, std::int64_t lines, int largest) {
      return static_cast<int>(2 * largest * line / (lines - 1)) - largest;
    };
    const auto scale = [&](std::int64_t i, std::int64_t j) {
      return scale_of(i, x.shape.m, 90) + scale_of(j, x.shape.n, 10);
    };
    for (std::int64_t l = 0; l < x.shape.k; ++l) {
      for (std::int64_t i = 0; i < x.shape.m; ++i) {
        const auto odd = static_cast<real>((random() % (1u << (bits - 1))) * 2 + 1);
        x.a.set(0, i, l, std::ldexp(odd, scale_of(i, x.shape.m, 90)));
      }
      for (std::int64_t j = 0; j < x.shape.n; ++j)
        x.b.set(0, l, j, std::ldexp(real(static_cast<int>(random() % 3) - 1), scale_of(j, x.shape.n, 10)));
    }
    run(x);
    if (HasFatalFailure()) return;
    for (std::int64_t i = 0; i < x.shape.m; i += 11)
      for (std::int64_t j = 0; j < x.shape.n; j += 13) {
        real exact = 0;
        for (std::int64_t l = 0; l < x.shape.k; ++l) exact += op_a(x, i, l) * op_b(x, l, j);
        ASSERT_EQ(x.c.get(0, i, j).real(), exact)
            << x.shape.text() << " at " << i << ", " << j << ", scale " << scale(i, j);
      }
  }
}

// Each special value meets 1, then 0, then itself; everything else is 0.
TEST_P(short_compute, special_values_propagate) {
  const real infinity = std::numeric_limits<real>::infinity(), nan = std::numeric_limits<real>::quiet_NaN();
  const real largest = std::numeric_limits<float>::max();
  for (const splitting &s : splittings)
    for (const bool in_a : {true, false}) {
      gemm_case x(shape(300, s.compute));
      for (host_operand *operand : {&x.a, &x.b}) {
        for (std::int64_t j = 0; j < operand->cols; ++j)
          for (std::int64_t i = 0; i < operand->rows; ++i) operand->set(0, i, j, 0);
      }
      const real specials[] = {infinity, -infinity, nan, largest, -largest, 0, 1};
      constexpr std::int64_t count = 7, depth = 137;
      host_operand &special = in_a ? x.a : x.b, &other = in_a ? x.b : x.a;
      const auto put = [&](host_operand &operand, std::int64_t line, real value) {
        operand.set(0, &operand == &x.a ? line : depth, &operand == &x.a ? depth : line, value);
      };
      const auto get = [&](std::int64_t of_special, std::int64_t of_other) {
        return x.c.get(0, in_a ? of_special : of_other, in_a ? of_other : of_special).real();
      };
      for (std::int64_t i = 0; i < count; ++i) put(special, i, specials[i]);
      const real others[] = {1, 0, -0.5L, 1 + 0x1p-20L};
      for (std::int64_t j = 0; j < 4; ++j) put(other, j, others[j]);
      run(x);
      if (HasFatalFailure()) return;
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < 4; ++j) {
          const real seen = get(i, j), exact = specials[i] * others[j];
          const std::string where = x.shape.text() + (in_a ? ", in A " : ", in B ") +
                                    std::to_string(double(specials[i])) + " * " + std::to_string(double(others[j]));
          if (std::isnan(exact)) {
            EXPECT_TRUE(std::isnan(seen)) << where << " = " << double(seen);
          } else if (std::isinf(exact)) {
            EXPECT_EQ(seen, exact) << where;
          } else if (std::abs(exact) <= largest) {
            EXPECT_LE(std::abs(seen - exact), std::abs(exact) * s.near_f32) << where << " = " << double(seen);
          }
        }
    }
}

// The cpu and simulated devices have one f32 GEMM: the same bits whatever compute type is allowed.
TEST_P(short_compute, computes_f32_if_operands_are_not_split) {
  if (is_gpu()) GTEST_SKIP() << "it splits";
  gemm_case exact(shape(1300, SG_COMPUTE_EXACT));
  run(exact);
  for (const sg_compute compute : {SG_COMPUTE_TF32, SG_COMPUTE_3XTF32, SG_COMPUTE_BF16, SG_COMPUTE_BF16X3}) {
    gemm_case x(shape(1300, compute));
    run(x);
    EXPECT_EQ(exact.c.bytes, x.c.bytes) << x.shape.text();
  }
}

SG_CONFORMANCE(short_compute);

}  // namespace
}  // namespace sg::test
