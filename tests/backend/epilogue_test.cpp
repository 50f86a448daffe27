// SPDX-License-Identifier: Apache-2.0
// Epilogues: bias and activation of GEMMs and of reductions, in every type.
#include "gemm_case.hpp"

namespace sg::test {
namespace {

std::vector<sg_activation> activations_for(sg_dtype out) {
  if (is_complex(out)) return {SG_ACTIVATION_NONE};
  if (is_integer(out)) return {SG_ACTIVATION_NONE, SG_ACTIVATION_RELU};
  return {SG_ACTIVATION_NONE, SG_ACTIVATION_RELU, SG_ACTIVATION_GELU};
}

constexpr bias_form all_biases[] = {bias_form::none, bias_form::per_row, bias_form::per_column, bias_form::own_per_row,
                                    bias_form::own_per_column};

class epilogue : public conformance {
 protected:
  void SetUp() override {
    if (!has_epilogues(*dev())) GTEST_SKIP() << "the device has no epilogues";
  }

  void try_shape(const gemm_spec &shape) {
    gemm_case x(shape, seed_++);
    ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK) << shape.text();
    x.check();
  }

  stream stream_{dev()};

 private:
  std::uint64_t seed_ = 1;
};

TEST_P(epilogue, every_type_bias_and_activation) {
  sweep cases;
  constexpr struct { std::int64_t m, n, k; } sizes[] = {{1, 1, 1}, {1, 9, 3}, {9, 1, 4}, {17, 15, 33}, {40, 48, 64}};
  for (const pair_of_types types : all_pairs)
    for (const sg_activation activation : activations_for(types.out))
      for (const bias_form bias : all_biases)
        for (const auto &size : sizes)
          for (const sg_scalar beta : {sg_scalar{0, 0}, sg_scalar{1, 0}, sg_scalar{-2, 0}}) {
            if (!cases.tries_next()) continue;
            const sg_transpose op = (size.m + size.k) % 2 ? SG_TRANSPOSE_T : SG_TRANSPOSE_N;
            try_shape({.types = types,
                       .m = size.m,
                       .n = size.n,
                       .k = size.k,
                       .op_a = op,
                       .op_b = op,
                       .alpha = {beta.re == 0 ? 1.0 : 3.0, 0},
                       .beta = beta,
                       .gap = size.n % 4,
                       .bias = bias,
                       .activation = activation});
            if (HasFatalFailure()) return;
          }
}

// Larger than small kernels take, and larger than one tile.
TEST_P(epilogue, large_gemms) {
  sweep cases;
  constexpr struct {
    std::int64_t m, n, k;
    bias_form bias;
  } sizes[] = {{256, 264, 64, bias_form::per_row},  {7, 1100, 5, bias_form::per_row},
               {7, 1100, 5, bias_form::per_column}, {1100, 7, 5, bias_form::per_row},
               {1100, 7, 5, bias_form::per_column}, {96, 40, 600, bias_form::per_column}};
  for (const pair_of_types types : all_pairs)
    for (const auto &size : sizes) {
      if (!cases.tries_next()) continue;
      try_shape({.types = types,
                 .m = size.m,
                 .n = size.n,
                 .k = size.k,
                 .op_a = SG_TRANSPOSE_T,
                 .beta = {size.k == 64 ? 1.0 : 0.0, 0},
                 .bias = size.bias,
                 .activation = activations_for(types.out).back()});
      if (HasFatalFailure()) return;
    }
}

TEST_P(epilogue, batches) {
  sweep cases;
  for (const pair_of_types types : all_pairs)
    for (const sg_activation activation : activations_for(types.out))
      for (const bias_form bias : all_biases)
        for (const batching form : all_batchings)
          for (const double beta : {0.0, 1.0}) {
            if (!cases.tries_next()) continue;
            try_shape({.types = types,
                       .m = 24,
                       .n = 17,
                       .k = 9,
                       .beta = {beta, 0},
                       .gap = 2,
                       .batch = 5,
                       .form = form,
                       .bias = bias,
                       .activation = activation});
            if (HasFatalFailure()) return;
          }
}

// Sums of integers are exact, so every bit of the result is known.
TEST_P(epilogue, whole_numbers_are_exact) {
  sweep cases;
  for (const pair_of_types types : all_pairs)
    for (const sg_activation activation : {SG_ACTIVATION_NONE, SG_ACTIVATION_RELU})
      for (const bias_form bias : {bias_form::per_row, bias_form::per_column}) {
        if ((is_complex(types.out) && activation != SG_ACTIVATION_NONE) || !cases.tries_next()) continue;
        gemm_case x(
            {.types = types, .m = 70, .n = 33, .k = 12, .beta = {1, 0}, .bias = bias, .activation = activation});
        std::mt19937 random(11);
        const auto fill = [&](host_operand &operand) {
          for (std::int64_t j = 0; j < operand.cols; ++j)
            for (std::int64_t i = 0; i < operand.rows; ++i)
              operand.set(0, i, j, number(static_cast<int>(random() % 7) - 3));
        };
        for (host_operand *operand : {&x.a, &x.b, &x.c, &x.bias}) fill(*operand);
        host_operand before = x.c;
        ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK);
        for (std::int64_t j = 0; j < 33; ++j)
          for (std::int64_t i = 0; i < 70; ++i) {
            number sum = before.get(0, i, j) + x.bias.get(0, bias == bias_form::per_row ? i : j, 0);
            for (std::int64_t l = 0; l < 12; ++l) sum += x.a.get(0, i, l) * x.b.get(0, l, j);
            if (activation == SG_ACTIVATION_RELU && sum.real() < 0) sum = 0;
            ASSERT_EQ(x.c.get(0, i, j), sum) << x.shape.text() << " at " << i << ", " << j;
          }
      }
}

// C = x * 1, for x from where GELU is 0 to where it is x.
TEST_P(epilogue, gelu_of_any_size) {
  for (const pair_of_types types : all_pairs) {
    if (is_complex(types.out) || is_integer(types.out)) continue;
    gemm_case x({.types = types, .m = 1601, .n = 1, .k = 1, .activation = SG_ACTIVATION_GELU});
    for (std::int64_t i = 0; i < 1601; ++i) x.a.set(0, i, 0, number(real(i - 800) / 50));
    x.b.set(0, 0, 0, 1);
    ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK);
    x.check();
    if (HasFatalFailure()) return;
  }
}

TEST_P(epilogue, nan_and_infinity_propagate_through_epilogues) {
  sweep cases;
  const real nan = std::numeric_limits<real>::quiet_NaN(), infinity = std::numeric_limits<real>::infinity();
  for (const pair_of_types types : all_pairs) {
    if (is_complex(types.out) || is_integer(types.out)) continue;
    for (const sg_activation activation : activations_for(types.out))
      for (const bias_form bias : {bias_form::none, bias_form::per_row, bias_form::per_column})
        for (const std::int64_t n : {16, 64}) {
          if (!cases.tries_next()) continue;
          gemm_case x({.types = types, .m = n, .n = n, .k = n, .bias = bias, .activation = activation});
          // Row 0 of A is NaN, row 1 +infinity, row 2 -infinity; where the bias is NaN the other operands are finite.
          for (std::int64_t l = 0; l < n; ++l) {
            for (std::int64_t i = 0; i < n; ++i)
              x.a.set(0, i, l, i == 0 ? nan : i == 1 ? infinity : i == 2 ? -infinity : -1);
            for (std::int64_t j = 0; j < n; ++j) x.b.set(0, l, j, 1);
          }
          if (bias != bias_form::none)
            for (std::int64_t i = 0; i < n; ++i) x.bias.set(0, i, 0, i == 4 ? nan : 0);
          ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK);
          for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t i = 0; i < n; ++i) {
              const real found = x.c.get(0, i, j).real();
              const bool nan_bias = bias != bias_form::none && (bias == bias_form::per_row ? i : j) == 4;
              const std::string where = x.shape.text() + " at " + std::to_string(i) + ", " + std::to_string(j);
              const bool no_infinity = types.in == SG_DTYPE_F8_E4M3 && (i == 1 || i == 2);  // a NaN instead
              if (i == 0 || nan_bias || no_infinity) {
                ASSERT_TRUE(std::isnan(found)) << where << ": " << found;
              } else if (i == 1) {
                ASSERT_EQ(found, infinity) << where;
              } else if (i == 2 && activation == SG_ACTIVATION_RELU) {
                ASSERT_EQ(found, 0) << where;
              } else if (i > 2) {
                ASSERT_TRUE(std::isfinite(found)) << where;
              }
            }
        }
  }
}

// i8 sums wrap before the activation looks at their sign.
TEST_P(epilogue, sums_that_wrap) {
  gemm_case x({.types = {SG_DTYPE_I8, SG_DTYPE_I32},
               .m = 4,
               .n = 4,
               .k = 16,
               .bias = bias_form::per_row,
               .activation = SG_ACTIVATION_RELU});
  for (std::int64_t i = 0; i < 4; ++i) x.bias.set(0, i, 0, i % 2 ? real(INT32_MAX) : real(INT32_MIN));
  ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK);
  x.check();
}

TEST_P(epilogue, reductions) {
  sweep cases;
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> unit(-1, 1);
  for (const auto &[part, out] : {std::pair{SG_DTYPE_F64, SG_DTYPE_F64},
                                  {SG_DTYPE_F32, SG_DTYPE_F32},
                                  {SG_DTYPE_C64, SG_DTYPE_C64},
                                  {SG_DTYPE_C128, SG_DTYPE_C128},
                                  {SG_DTYPE_F32, SG_DTYPE_F16},
                                  {SG_DTYPE_F32, SG_DTYPE_BF16},
                                  {SG_DTYPE_I32, SG_DTYPE_I32}})
    for (const sg_activation activation : activations_for(out))
      for (const bias_form form : {bias_form::none, bias_form::per_row, bias_form::per_column})
        for (const std::int64_t count : {0, 1, 3})
          for (const double beta : {0.0, 1.0, -2.0}) {
            if (!cases.tries_next()) continue;
            const std::int64_t m = 1030, n = 3;
            const auto any = [&, type = out] {
              return is_integer(type) ? number(static_cast<int>(random() % 2001) - 1000)
                                      : number(unit(random), is_complex(type) ? unit(random) : 0);
            };
            host_operand c(out, m, n, 2, 1), parts(part, m, n, 1, count),
                bias(out, form == bias_form::per_row ? m : n, 1, 0, 1);
            for (host_operand *x : {&c, &parts, &bias})
              for (std::int64_t item = 0; item < x->items; ++item)
                for (std::int64_t j = 0; j < x->cols; ++j)
                  for (std::int64_t i = 0; i < x->rows; ++i)
                    if (x != &c || beta != 0) x->set(item, i, j, any());
            host_operand before = c;
            const auto size = [](const host_operand &x) { return static_cast<std::int64_t>(x.bytes.size()); };
            memory at_c(dev(), size(c)), at_parts(dev(), size(parts)), at_bias(dev(), size(bias));
            at_c.write(stream_, c.bytes.data());
            at_parts.write(stream_, parts.bytes.data());
            at_bias.write(stream_, bias.bytes.data());
            sg_backend_reduce x = {};
            x.m = m, x.n = n, x.part_type = part, x.out_type = out, x.beta = {beta, 0};
            x.parts = count > 0 ? at_parts.data() : nullptr;
            x.parts_count = count, x.part_ld = parts.ld, x.part_stride = parts.item_elements();
            x.c = at_c.data(), x.ldc = c.ld;
            x.bias = form == bias_form::none ? nullptr : at_bias.data();
            x.bias_per_row = form == bias_form::per_row;
            x.activation = activation;
            if (count == 0 && beta == 1 && !x.bias && activation == SG_ACTIVATION_NONE) continue;
            complete(*dev(), stream_, x);
            at_c.read(stream_, c.bytes.data());
            const precision p = precision_of(out, false);
            const real unit_of_sum = part == SG_DTYPE_F64 || part == SG_DTYPE_C128 ? 0x1p-53L : 0x1p-24L;
            for (std::int64_t j = 0; j < n; ++j)
              for (std::int64_t i = 0; i < m; ++i) {
                number sum = beta == 0 ? number(0) : real(beta) * before.get(0, i, j);
                real magnitude = std::abs(sum);
                for (std::int64_t item = 0; item <= count; ++item) {
                  const number term = item < count              ? parts.get(item, i, j)
                                      : form == bias_form::none ? number(0)
                                                                : bias.get(0, form == bias_form::per_row ? i : j, 0);
                  sum += term, magnitude += std::abs(term);
                }
                const number exact = activation == SG_ACTIVATION_NONE ? sum : number(activated(activation, sum.real()));
                const real error =
                    is_integer(out) ? 0
                                    : activation_error(activation, sum.real(),
                                                       real(count + 4) * unit_of_sum * magnitude * 1.1L, unit_of_sum);
                ASSERT_LE(std::abs(c.get(0, i, j) - exact),
                          p.out * std::abs(exact) + 1.01L * error + (is_integer(out) ? 0 : p.tiny))
                    << size_of(out) << " beta " << beta << " parts " << count << " bias " << static_cast<int>(form)
                    << " activation " << activation << " at " << i << ", " << j << ": " << c.get(0, i, j)
                    << " instead of " << exact;
              }
          }
}

SG_CONFORMANCE(epilogue);

}  // namespace
}  // namespace sg::test
