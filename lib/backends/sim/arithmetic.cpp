// SPDX-License-Identifier: Apache-2.0
#include "arithmetic.hpp"

#include <algorithm>
#include <cmath>

#include "element.hpp"
#include "ending.hpp"

namespace sg::sim {

namespace {

// A block of C is summed over all of k, in the accumulator's type, before it is rounded. Its operands are unpacked, a
// slice of k at a time, and its sides are rounded up to full register tiles; the additional sums are not stored.
constexpr std::int64_t block_m = 128, block_n = 64, block_k = 128;
constexpr std::int64_t tile = 4;
static_assert(block_m % tile == 0 && block_n % tile == 0);

constexpr std::int64_t padded(std::int64_t count) { return (count + tile - 1) / tile * tile; }

// c[j][i] += sum over p < k of a[p][i] * b[p][j], for i < m and j < n, multiples of the tile.
template <class Real>
void accumulate(std::int64_t m, std::int64_t n, std::int64_t k, const Real *a, const Real *b, Real *c) {
  for (std::int64_t j = 0; j < n; j += tile)
    for (std::int64_t i = 0; i < m; i += tile) {
      Real sum[tile][tile] = {};
      for (std::int64_t p = 0; p < k; ++p)
        for (std::int64_t jj = 0; jj < tile; ++jj)
          for (std::int64_t ii = 0; ii < tile; ++ii) sum[jj][ii] += a[p * block_m + i + ii] * b[p * block_n + j + jj];
      for (std::int64_t jj = 0; jj < tile; ++jj)
        for (std::int64_t ii = 0; ii < tile; ++ii) c[(j + jj) * block_m + i + ii] += sum[jj][ii];
    }
}

// Element (i, p) of the matrix after its op is at i * row_step + p * column_step.
template <sg_dtype type>
struct source {
  using traits = element<type>;
  const typename traits::stored *data;
  std::int64_t row_step, column_step;
  bool conjugate;

  source(const std::byte *bytes, std::int64_t ld, sg_transpose op)
      : data(reinterpret_cast<const typename traits::stored *>(bytes)),
        row_step(op == SG_TRANSPOSE_N ? 1 : ld),
        column_step(op == SG_TRANSPOSE_N ? ld : 1),
        conjugate(op == SG_TRANSPOSE_C) {}

  double load(std::int64_t i, std::int64_t p, int plane) const {
    const double value = traits::load(data[(i * row_step + p * column_step) * traits::planes + plane]);
    return plane == 1 && conjugate ? -value : value;
  }
};

// The planes of one operand's slice: real parts, imaginary parts.
template <class Real>
struct slice {
  std::vector<Real> plane[2];

  slice(std::int64_t count, int planes) {
    for (int p = 0; p < planes; ++p) plane[p].resize(count);
  }
};

template <sg_dtype in, sg_dtype out>
class block_gemm {
 public:
  static constexpr int planes = element<in>::planes;
  static_assert(planes == element<out>::planes);
  using real = typename element<out>::sum;

  explicit block_gemm(const sg_backend_gemm &gemm)
      : gemm_(gemm),
        a_(block_m * block_k, planes),
        b_(block_n * block_k, planes),
        c_(block_m * block_n, planes),
        minus_b_(planes == 2 ? block_n * block_k : 0) {}

  void run(const std::byte *a, const std::byte *b, std::byte *c, const std::byte *bias) {
    const ending<out> end{bias, gemm_.bias_per_row != 0, gemm_.activation};
    const source<in> from_a(a, gemm_.lda, gemm_.op_a);
    const source<in> from_b(b, gemm_.ldb, gemm_.op_b);
    auto *to = reinterpret_cast<typename element<out>::stored *>(c);
    for (std::int64_t j = 0; j < gemm_.n; j += block_n)
      for (std::int64_t i = 0; i < gemm_.m; i += block_m) {
        const std::int64_t m = std::min(block_m, gemm_.m - i), n = std::min(block_n, gemm_.n - j);
        for (auto &plane : c_.plane) std::fill(plane.begin(), plane.end(), real{0});
        for (std::int64_t p = 0; p < gemm_.k; p += block_k) add(from_a, from_b, i, j, p, m, n);
        store(to, i, j, m, n, end);
      }
  }

 private:
  void add(const source<in> &from_a, const source<in> &from_b, std::int64_t i, std::int64_t j, std::int64_t p,
           std::int64_t m, std::int64_t n) {
    const std::int64_t k = std::min(block_k, gemm_.k - p);
    for (int plane = 0; plane < planes; ++plane) {
      unpack(a_.plane[plane], block_m, k, m,
             [&](std::int64_t q, std::int64_t r) { return from_a.load(i + r, p + q, plane); });
      unpack(b_.plane[plane], block_n, k, n,
             [&](std::int64_t q, std::int64_t r) { return from_b.load(p + q, j + r, plane); });
    }
    const auto sum = [&](int a_plane, const std::vector<real> &b, int c_plane) {
      accumulate(padded(m), padded(n), k, a_.plane[a_plane].data(), b.data(), c_.plane[c_plane].data());
    };
    sum(0, b_.plane[0], 0);
    if constexpr (planes == 2) {
      std::transform(b_.plane[1].begin(), b_.plane[1].end(), minus_b_.begin(), [](real x) { return -x; });
      sum(1, minus_b_, 0);
      sum(0, b_.plane[1], 1);
      sum(1, b_.plane[0], 1);
    }
  }

  template <class Load>
  static void unpack(std::vector<real> &to, std::int64_t width, std::int64_t k, std::int64_t count, Load &&load) {
    for (std::int64_t q = 0; q < k; ++q) {
      real *row = to.data() + q * width;
      for (std::int64_t r = 0; r < count; ++r) row[r] = static_cast<real>(load(q, r));
    }
  }

  void store(typename element<out>::stored *c, std::int64_t row, std::int64_t col, std::int64_t m, std::int64_t n,
             const ending<out> &end) {
    using traits = element<out>;
    const bool reads_c = gemm_.beta.re != 0 || (planes == 2 && gemm_.beta.im != 0);
    const auto load = [](auto stored) { return static_cast<real>(traits::load(stored)); };
    const auto alpha = static_cast<real>(gemm_.alpha.re), alpha_im = static_cast<real>(gemm_.alpha.im);
    const auto beta = static_cast<real>(gemm_.beta.re), beta_im = static_cast<real>(gemm_.beta.im);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        auto *at = c + (row + i + (col + j) * gemm_.ldc) * planes;
        const real re = c_.plane[0][j * block_m + i];
        if constexpr (planes == 1) {
          const real product = scaled<out>(alpha, re);
          const real sum = reads_c ? product + scaled<out>(beta, load(*at)) : product;
          *at = end.store(sum, row + i, col + j, 0);
        } else {
          const real im = c_.plane[1][j * block_m + i];
          real out_re = alpha * re - alpha_im * im, out_im = alpha * im + alpha_im * re;
          if (reads_c) {
            const real c_re = load(at[0]), c_im = load(at[1]);
            out_re += beta * c_re - beta_im * c_im;
            out_im += beta * c_im + beta_im * c_re;
          }
          at[0] = end.store(out_re, row + i, col + j, 0);
          at[1] = end.store(out_im, row + i, col + j, 1);
        }
      }
  }

  const sg_backend_gemm &gemm_;
  slice<real> a_, b_, c_;
  std::vector<real> minus_b_;
};

template <sg_dtype part, sg_dtype out>
void sum_parts(const sg_backend_reduce &reduce, const std::byte *parts, std::byte *c, const std::byte *bias) {
  using from = element<part>;
  using to = element<out>;
  static_assert(from::planes == to::planes);
  constexpr int planes = to::planes;
  const auto *first = reinterpret_cast<const typename from::stored *>(parts);
  auto *result = reinterpret_cast<typename to::stored *>(c);
  using real = typename to::sum;
  const auto beta_re = static_cast<real>(reduce.beta.re), beta_im = static_cast<real>(reduce.beta.im);
  const bool reads_c = beta_re != 0 || (planes == 2 && beta_im != 0);
  const ending<out> end{bias, reduce.bias_per_row != 0, reduce.activation};
  for (std::int64_t j = 0; j < reduce.n; ++j)
    for (std::int64_t i = 0; i < reduce.m; ++i) {
      auto *at = result + (i + j * reduce.ldc) * planes;
      real sum[2] = {0, 0};
      if (reads_c) {
        const auto re = static_cast<real>(to::load(at[0]));
        const auto im = static_cast<real>(planes == 2 ? to::load(at[planes - 1]) : 0);
        sum[0] = planes == 2 ? beta_re * re - beta_im * im : scaled<out>(beta_re, re);
        sum[1] = beta_re * im + beta_im * re;
      }
      const std::int64_t at_part = i + j * reduce.part_ld;
      for (int plane = 0; plane < planes && reduce.parts_count > 0; ++plane)
        sum[plane] += pairwise_sum<real>(0, reduce.parts_count, [&](std::int64_t item) {
          return static_cast<real>(from::load(first[(at_part + item * reduce.part_stride) * planes + plane]));
        });
      for (int plane = 0; plane < planes; ++plane) at[plane] = end.store(sum[plane], i, j, plane);
    }
}

}  // namespace

void multiply(const sg_backend_gemm &gemm, const item_list &a, const item_list &b, const item_list &c,
              const item_list &bias) {
  with_type(gemm.in_type, [&]<sg_dtype in>() {
    with_type(gemm.out_type, [&]<sg_dtype out>() {
      if constexpr (is_gemm_type(in, out)) {
        block_gemm<in, out> block(gemm);
        // Items are independent; the reverse order reveals a dependence between them.
        for (std::int64_t item = gemm.batch; item-- > 0;)
          block.run(a.at(item), b.at(item), c.at(item), gemm.bias ? bias.at(item) : nullptr);
      }
    });
  });
}

void add_parts(const sg_backend_reduce &reduce, const std::byte *parts, std::byte *c, const std::byte *bias) {
  // Without parts their type is irrelevant: any type valid for C does.
  with_type(reduce.parts_count > 0 ? reduce.part_type : sum_type_of(reduce.out_type), [&]<sg_dtype part>() {
    with_type(reduce.out_type, [&]<sg_dtype out>() {
      if constexpr (is_part_type(part, out)) sum_parts<part, out>(reduce, parts, c, bias);
    });
  });
}

}  // namespace sg::sim
