// SPDX-License-Identifier: Apache-2.0
// GEMMs: every type, op, scalar class and batch form, at sizes around the edges of tiles.
#include <numeric>

#include "gemm_case.hpp"
#include "support/sanitizers.hpp"

namespace sg::test {
namespace {

class gemm : public conformance {
 protected:
  void try_shape(const gemm_spec &shape) {
    gemm_case x(shape, seed_++);
    ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK) << shape.text();
    x.check();
  }

  stream stream_{dev()};

 private:
  std::uint64_t seed_ = 1;
};

constexpr struct {
  std::int64_t m, n, k;
} sizes[] = {{1, 1, 1},    {1, 1, 70},   {1, 9, 3},    {9, 1, 4},    {2, 3, 1},     {5, 4, 8},     {16, 16, 16},
             {17, 15, 33}, {24, 24, 24}, {25, 24, 24}, {31, 64, 65}, {64, 48, 130}, {1, 100, 130}, {100, 1, 130}};

struct scalar_pair {
  sg_scalar alpha, beta;
};

std::vector<scalar_pair> scalars_for(sg_dtype out) {
  if (is_integer(out)) return {{{1, 0}, {0, 0}}, {{1, 0}, {1, 0}}, {{-3, 0}, {0, 0}}, {{2, 0}, {-7, 0}}};
  // The imaginary parts are ignored for real types.
  return {{{1, 0}, {0, 0}}, {{1, 0}, {1, 0}}, {{-1.5, 0.25}, {0, 0}}, {{1, 0}, {0.5, 0}}, {{0.75, -2}, {-0.5, 1}}};
}

std::vector<sg_transpose> ops_for(sg_dtype type) {
  return is_complex(type) ? std::vector{SG_TRANSPOSE_N, SG_TRANSPOSE_T, SG_TRANSPOSE_C}
                          : std::vector{SG_TRANSPOSE_N, SG_TRANSPOSE_T};
}

TEST_P(gemm, every_type_op_and_scalar) {
  sweep cases;
  for (const pair_of_types types : all_pairs)
    for (const sg_transpose op_a : ops_for(types.in))
      for (const sg_transpose op_b : ops_for(types.in))
        for (const scalar_pair &s : scalars_for(types.out))
          for (const auto &size : sizes) {
            if (!cases.tries_next()) continue;
            try_shape({.types = types,
                       .m = size.m,
                       .n = size.n,
                       .k = size.k,
                       .op_a = op_a,
                       .op_b = op_b,
                       .alpha = s.alpha,
                       .beta = s.beta,
                       .gap = (size.m + size.n) % 4});
            if (HasFatalFailure()) return;
          }
}

// Larger than one tile, and one element more, in each dimension.
TEST_P(gemm, sizes_beyond_a_tile) {
  for (const pair_of_types types : all_pairs)
    for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T}) {
      for (const sg_scalar beta : {sg_scalar{0, 0}, sg_scalar{2, 0}}) {
        try_shape({.types = types,
                   .m = 1025,
                   .n = 3,
                   .k = 5,
                   .op_a = op,
                   .op_b = op,
                   .alpha = {3, 0},
                   .beta = beta,
                   .gap = 1});
        try_shape({.types = types, .m = 3, .n = 1025, .k = 5, .op_a = op, .op_b = op, .beta = beta});
        try_shape({.types = types, .m = 5, .n = 7, .k = 1025, .op_a = op, .op_b = op, .beta = beta, .gap = 3});
      }
      if (HasFatalFailure()) return;
    }
}

// Small kernels compute strips of vectors in blocks of the depth: every height of a strip and of its last vector, every
// number of remaining columns, and depths around one and two blocks.
TEST_P(gemm, f32_at_every_edge_of_small_kernels) {
  for (const sg_transpose op_b : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
    for (const sg_scalar beta : {sg_scalar{0, 0}, sg_scalar{-0.5, 0}}) {
      for (const std::int64_t m : {1, 15, 16, 17, 32, 33, 48, 63, 64, 65, 80, 95, 97, 112, 113, 128, 145})
        for (std::int64_t n = 1; n <= 15; ++n) {
          try_shape({.m = m, .n = n, .k = 3, .op_b = op_b, .alpha = {1.5, 0}, .beta = beta, .gap = n % 3});
          if (HasFatalFailure()) return;
        }
      for (const std::int64_t k : {1023, 1024, 1025, 1536, 1537, 2048, 2561}) {
        try_shape({.m = 37, .n = 11, .k = k, .op_b = op_b, .alpha = {1.5, 0}, .beta = beta, .gap = 1});
        try_shape({.m = 64, .n = 64, .k = k, .op_b = op_b, .beta = beta});
        if (HasFatalFailure()) return;
      }
    }
}

TEST_P(gemm, batches) {
  sweep cases(1, !sg_test::sanitized, 7);
  for (const pair_of_types types : all_pairs)
    for (const batching form : all_batchings)
      for (const std::int64_t batch : {1, 2, 7}) {
        if (!cases.tries_next()) continue;
        try_shape({.types = types,
                   .m = 6,
                   .n = 5,
                   .k = 9,
                   .op_b = SG_TRANSPOSE_T,
                   .beta = {1, 0},
                   .gap = 2,
                   .batch = batch,
                   .form = form});
        try_shape({.types = types, .m = 40, .n = 33, .k = 17, .alpha = {2, 0}, .batch = batch, .form = form});
        if (HasFatalFailure()) return;
      }
  for (const pair_of_types types : all_pairs)
    for (const std::int64_t batch : {161, 1500})  // more than fit into a kernel's arguments
      if (cases.tries_next())
        try_shape({.types = types, .m = 3, .n = 2, .k = 4, .batch = batch, .form = batching::scattered});
}

// A format shorter than f32 cannot hold odd numbers from 2049 to 4095: it must not be used, whatever the environment
// says.
TEST_P(gemm, f32_is_computed_in_f32) {
  constexpr struct {
    std::int64_t m, n, k;
  } shapes[] = {{8, 8, 8}, {24, 24, 24}, {33, 17, 64}, {64, 64, 1024}, {256, 200, 300}};
  for (const auto &s : shapes)
    for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T}) {
      gemm_case x({.m = s.m, .n = s.n, .k = s.k, .op_a = op, .op_b = op});
      std::mt19937 random(7);
      for (std::int64_t i = 0; i < s.m * s.k; ++i)
        store(SG_DTYPE_F32, &x.a.bytes[static_cast<std::size_t>(4 * i)], 2049 + 2 * static_cast<int>(random() % 1024));
      for (std::int64_t i = 0; i < s.k * s.n; ++i)
        store(SG_DTYPE_F32, &x.b.bytes[static_cast<std::size_t>(4 * i)], static_cast<int>(random() % 3) - 1);
      ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK);
      std::vector<double> a, b;  // whose sums of products are exact
      for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t l = 0; l < s.k; ++l)
          a.push_back(double((op == SG_TRANSPOSE_N ? x.a.get(0, i, l) : x.a.get(0, l, i)).real()));
      for (std::int64_t j = 0; j < s.n; ++j)
        for (std::int64_t l = 0; l < s.k; ++l)
          b.push_back(double((op == SG_TRANSPOSE_N ? x.b.get(0, l, j) : x.b.get(0, j, l)).real()));
      for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
          const double exact = std::inner_product(&a[std::size_t(i * s.k)], &a[std::size_t(i * s.k)] + s.k,
                                                  &b[std::size_t(j * s.k)], 0.0);
          ASSERT_EQ(x.c.get(0, i, j), number(exact)) << x.shape.text() << " at " << i << ", " << j;
        }
    }
}

// Sums of i8 products are exact, and wrap beyond 2^31 in two's complement.
TEST_P(gemm, i8_sums_are_exact_at_any_depth) {
  for (const std::int64_t k : {1024, 1025, 70000, 140000})
    for (const auto &[x, y] : {std::pair{-128, -128}, {-128, 127}, {127, 127}})
      for (const sg_scalar beta : {sg_scalar{0, 0}, sg_scalar{1, 0}}) {
        gemm_case p(
            {.types = {SG_DTYPE_I8, SG_DTYPE_I32}, .m = 3, .n = 2, .k = k, .op_a = SG_TRANSPOSE_T, .beta = beta});
        std::memset(p.a.bytes.data(), x, p.a.bytes.size());
        std::memset(p.b.bytes.data(), y, p.b.bytes.size());
        ASSERT_EQ(p.run(dev(), stream_), SG_STATUS_OK);
        p.check();
        if (HasFatalFailure()) return;
      }
}

TEST_P(gemm, i32_keeps_what_f32_would_round) {
  gemm_case x({.types = {SG_DTYPE_I8, SG_DTYPE_I32}, .m = 20, .n = 20, .k = 20, .beta = {1, 0}});
  for (std::int64_t j = 0; j < 20; ++j)
    for (std::int64_t i = 0; i < 20; ++i) x.c.set(0, i, j, (std::int64_t{1} << 30) + 20 * j + i + 1);
  ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK);
  x.check();
}

// NaN and infinity reach every element that depends on them, and no other; no zero skips them.
TEST_P(gemm, nan_and_infinity_propagate) {
  const real inf = std::numeric_limits<real>::infinity(), nan = std::numeric_limits<real>::quiet_NaN();
  for (const pair_of_types types : all_pairs) {
    if (is_integer(types.in)) continue;
    for (const std::int64_t n : {3, 40}) {
      gemm_case x({.types = types, .m = n, .n = n, .k = n});
      x.a.set(0, 1, 1, nan);
      for (std::int64_t l = 0; l < n; ++l) x.a.set(0, 2, l, 0);
      x.b.set(0, 0, 2, inf);
      ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK);
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const number found = x.c.get(0, i, j);
          const std::string where = x.shape.text() + " at " + std::to_string(i) + ", " + std::to_string(j);
          if (i == 1 || (i == 2 && j == 2)) {
            EXPECT_TRUE(std::isnan(found.real())) << where;
          } else if (j != 2) {
            EXPECT_TRUE(std::isfinite(found.real())) << where;
          } else if (types.in == SG_DTYPE_F8_E4M3) {
            EXPECT_TRUE(std::isnan(found.real())) << where;  // it has no infinity
          } else if (!is_complex(types.in)) {
            EXPECT_TRUE(std::isinf(found.real())) << where;
          }
        }
    }
  }
}

// All values of an 8-bit format: multiplied by one, each stays exact.
TEST_P(gemm, every_value_of_f8) {
  for (const sg_dtype type : {SG_DTYPE_F8_E4M3, SG_DTYPE_F8_E5M2})
    for (const sg_dtype out : {SG_DTYPE_F32, SG_DTYPE_F16, SG_DTYPE_BF16})
      for (const sg_transpose op : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
        for (const std::int64_t n : {1, 40}) {
          gemm_case a({.types = {type, out}, .m = 256, .n = n, .k = 1, .op_a = op});
          gemm_case b({.types = {type, out}, .m = n, .n = 256, .k = 1, .op_b = op});
          for (int i = 0; i < 256; ++i) a.a.bytes[std::size_t(i)] = b.b.bytes[std::size_t(i)] = static_cast<char>(i);
          for (std::int64_t i = 0; i < n; ++i) a.b.set(0, 0, i, 1), b.a.set(0, i, 0, 1);
          ASSERT_EQ(a.run(dev(), stream_), SG_STATUS_OK);
          ASSERT_EQ(b.run(dev(), stream_), SG_STATUS_OK);
          for (int i = 0; i < 256; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              const real value = decode_8(type, static_cast<std::uint8_t>(i));
              for (const real found : {a.c.get(0, i, j).real(), b.c.get(0, j, i).real()}) {
                if (std::isnan(value)) {
                  ASSERT_TRUE(std::isnan(found)) << a.shape.text() << " of " << i;
                } else {
                  ASSERT_EQ(found, value) << a.shape.text() << " of " << i;
                }
              }
            }
        }
}

// Operands that a chip's f8 units accept as they are, and operands that they do not: depths and leading dimensions that
// are no multiples of 16, other ops, batches; and sums of integers of at most 14 bits.
TEST_P(gemm, f8_compute) {
  sweep cases;
  constexpr struct {
    std::int64_t m, n, k, gap;
  } shapes[] = {{16, 16, 16, 0},   {64, 48, 32, 0},    {256, 256, 64, 16}, {256, 272, 144, 0}, {128, 512, 100, 0},
                {100, 256, 64, 0}, {256, 260, 20, 12}, {256, 257, 80, 16}, {1, 16, 16, 0},     {260, 272, 40, 1}};
  for (const pair_of_types types : all_pairs) {
    const bool is_pair = types.in == SG_DTYPE_F8_E4M3 || (types.in == SG_DTYPE_F8_E5M2 && types.out == SG_DTYPE_F32);
    if (!is_pair) continue;
    for (const auto &s : shapes)
      for (const sg_transpose op_a : {SG_TRANSPOSE_N, SG_TRANSPOSE_T})
        for (const sg_transpose op_b : {SG_TRANSPOSE_N, SG_TRANSPOSE_T}) {
          if (!cases.tries_next()) continue;
          const bool adds = op_a == op_b;
          gemm_spec shape = {.types = types, .m = s.m, .n = s.n, .k = s.k, .op_a = op_a, .op_b = op_b};
          shape.gap = s.gap, shape.alpha = {0.5, 0}, shape.beta = {adds ? -2.0 : 0.0, 0};
          shape.compute = SG_COMPUTE_F8;
          try_shape(shape);
          if (HasFatalFailure()) return;
        }
    for (const batching form : all_batchings) {
      gemm_spec shape = {.types = types, .m = 64, .n = 32, .k = 48, .op_a = SG_TRANSPOSE_T, .batch = 3, .form = form};
      shape.compute = SG_COMPUTE_F8;
      try_shape(shape);
      shape.bias = bias_form::per_row, shape.activation = SG_ACTIVATION_RELU;
      try_shape(shape);
      if (HasFatalFailure()) return;
    }
    gemm_case whole({.types = types, .m = 256, .n = 256, .k = 256, .op_a = SG_TRANSPOSE_T, .compute = SG_COMPUTE_F8});
    std::mt19937 random(3);
    for (host_operand *x : {&whole.a, &whole.b})
      for (std::int64_t i = 0; i < x->rows * x->cols; ++i) x->set(0, i % x->rows, i / x->rows, int(random() % 5) - 2);
    ASSERT_EQ(whole.run(dev(), stream_), SG_STATUS_OK);
    for (std::int64_t i = 0; i < 256; i += 5)
      for (std::int64_t j = 0; j < 256; j += 7) {
        real sum = 0;
        for (std::int64_t l = 0; l < 256; ++l) sum += whole.a.get(0, l, i).real() * whole.b.get(0, l, j).real();
        ASSERT_EQ(whole.c.get(0, i, j), rounded(types.out, sum)) << whole.shape.text() << " at " << i << ", " << j;
      }
  }
}

TEST_P(gemm, overflow_of_a_short_result_is_infinity) {
  gemm_case x({.types = {SG_DTYPE_F16, SG_DTYPE_F16}, .m = 4, .n = 4, .k = 4});
  for (std::int64_t l = 0; l < 4; ++l) {
    for (std::int64_t i = 0; i < 4; ++i) x.a.set(0, i, l, i == 0 ? 128 : 127.9375);
    for (std::int64_t j = 0; j < 4; ++j) x.b.set(0, l, j, 128);
  }
  ASSERT_EQ(x.run(dev(), stream_), SG_STATUS_OK);
  for (std::int64_t j = 0; j < 4; ++j) {
    EXPECT_TRUE(std::isinf(x.c.get(0, 0, j).real()));  // 65536
    EXPECT_EQ(x.c.get(0, 1, j), number(65504));        // the largest
  }
}

TEST_P(gemm, same_call_same_bits) {
  stream other(dev());
  for (const pair_of_types types : all_pairs)
    for (const std::int64_t n : {7, 65, 200}) {
      const gemm_spec shape = {.types = types, .m = n, .n = n + 1, .k = 2 * n, .op_a = SG_TRANSPOSE_T, .beta = {1, 0}};
      gemm_case first(shape), second = first, third = first;
      ASSERT_EQ(first.run(dev(), stream_), SG_STATUS_OK);
      try_shape({.types = types, .m = 3, .n = 50, .k = 20});
      ASSERT_EQ(second.run(dev(), other), SG_STATUS_OK);
      ASSERT_EQ(third.run(dev(), stream_), SG_STATUS_OK);
      EXPECT_EQ(first.c.bytes, second.c.bytes) << shape.text();
      EXPECT_EQ(first.c.bytes, third.c.bytes) << shape.text();
    }
}

// More shapes than any cache of generated code holds, each of them twice.
TEST_P(gemm, many_shapes) {
  for (int round = 0; round < 2; ++round)
    for (std::int64_t n = 1; n <= 80; ++n) {
      try_shape({.types = {SG_DTYPE_BF16, SG_DTYPE_F32}, .m = n, .n = 5, .k = 4});
      try_shape({.types = {SG_DTYPE_I8, SG_DTYPE_I32}, .m = 4, .n = n, .k = 6});
      if (HasFatalFailure()) return;
    }
}

SG_CONFORMANCE(gemm);

}  // namespace
}  // namespace sg::test
