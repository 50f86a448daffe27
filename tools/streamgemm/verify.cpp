// SPDX-License-Identifier: Apache-2.0
#include "verify.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

namespace sg::cli {

namespace {

// Rows of doubles whose dot products are the required elements. A complex GEMM becomes a real one: each row of op(A)
// becomes two, [re, -im] for the real part and [im, re] for the imaginary one, each column of op(B) becomes [re, im].
struct rows {
  std::int64_t count, length;
  std::vector<double> values;
  const double *row(std::int64_t i) const { return values.data() + i * length; }
};

std::complex<double> applied(const matrix &x, sg_transpose op, std::int64_t row, std::int64_t col) {
  if (op == SG_TRANSPOSE_N) return element(x, row, col);
  const auto value = element(x, col, row);
  return op == SG_TRANSPOSE_C ? std::conj(value) : value;
}

rows rows_of_left(const matrix &a, sg_transpose op) {
  const std::int64_t m = op == SG_TRANSPOSE_N ? a.rows : a.cols, k = op == SG_TRANSPOSE_N ? a.cols : a.rows;
  const std::int64_t parts = is_complex(a.dtype) ? 2 : 1;
  rows result{parts * m, parts * k, std::vector<double>(parts * m * parts * k)};
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p) {
      const auto value = applied(a, op, i, p);
      double *real_row = result.values.data() + parts * i * result.length + parts * p;
      real_row[0] = value.real();
      if (parts == 1) continue;
      real_row[1] = -value.imag();
      real_row[result.length] = value.imag();
      real_row[result.length + 1] = value.real();
    }
  return result;
}

rows rows_of_right(const matrix &b, sg_transpose op) {
  const std::int64_t n = op == SG_TRANSPOSE_N ? b.cols : b.rows, k = op == SG_TRANSPOSE_N ? b.rows : b.cols;
  const std::int64_t parts = is_complex(b.dtype) ? 2 : 1;
  rows result{n, parts * k, std::vector<double>(n * parts * k)};
  for (std::int64_t p = 0; p < k; ++p)
    for (std::int64_t j = 0; j < n; ++j) {
      const auto value = applied(b, op, p, j);
      double *at = result.values.data() + j * result.length + parts * p;
      at[0] = value.real();
      if (parts == 2) at[1] = value.imag();
    }
  return result;
}

struct dot {
  double sum = 0, magnitude = 0;  // sum of x*y, and of |x*y|
};

// Eight running sums, so that the compiler may use vector registers without being allowed to reorder anything.
dot dot_product(const double *x, const double *y, std::int64_t length) {
  constexpr int lanes = 8;
  double sum[lanes] = {}, magnitude[lanes] = {};
  std::int64_t p = 0;
  for (; p + lanes <= length; p += lanes)
    for (int q = 0; q < lanes; ++q) {
      const double product = x[p + q] * y[p + q];
      sum[q] += product;
      magnitude[q] += std::fabs(product);
    }
  dot result;
  for (; p < length; ++p) result.sum += x[p] * y[p], result.magnitude += std::fabs(x[p] * y[p]);
  for (int q = 0; q < lanes; ++q) result.sum += sum[q], result.magnitude += magnitude[q];
  return result;
}

// Unit roundoffs of one GEMM: of the operands when `compute` lets them be rounded, of the sums, and of the result.
struct error_model {
  double operands = 0, sums = 0, result = 0, largest = 0, tiny = 0;
};

error_model model_of(sg_dtype in, sg_dtype out, sg_compute compute) {
  error_model u;
  switch (in) {
    case SG_DTYPE_F64:
    case SG_DTYPE_C128: u.sums = 0x1p-53; break;
    case SG_DTYPE_I8: return u;  // exact
    case SG_DTYPE_F32:
    case SG_DTYPE_C64: u.sums = 0x1p-24; break;
    default: u.sums = 0x1p-23;  // f16, bf16, f8: tensor cores truncate
  }
  if (in == SG_DTYPE_F32 && compute != SG_COMPUTE_EXACT) {
    // The split formats drop the product of the two small parts, and the bits beyond both: as if each operand had that
    // many bits.
    const double unit = compute == SG_COMPUTE_TF32     ? 0x1p-11
                        : compute == SG_COMPUTE_BF16   ? 0x1p-8
                        : compute == SG_COMPUTE_BF16X3 ? 0x1p-15
                                                       : 0x1p-18;
    u.operands = 2 * unit + unit * unit;
    u.sums = 0x1p-23;
  }
  // Sums of 14 bits, for a block of the depth: like a rounding of the operands to 5 bits at the worst.
  if (compute == SG_COMPUTE_F8) u.operands = 0x1p-6;
  if (out == SG_DTYPE_F16)
    u.result = 0x1p-11, u.largest = 65504, u.tiny = 0x1p-24;
  else if (out == SG_DTYPE_BF16)
    u.result = 0x1p-8, u.largest = 0x1.fep127, u.tiny = 0x1p-133;
  else if (u.sums == 0x1p-53)
    u.largest = std::numeric_limits<double>::max(), u.tiny = 0x1p-1074;
  else
    u.largest = std::numeric_limits<float>::max(), u.tiny = 0x1p-149;
  return u;
}

double activated(sg_activation activation, double x) {
  if (activation == SG_ACTIVATION_RELU) return x < 0 ? 0 : x;
  if (activation == SG_ACTIVATION_NONE) return x;
  return x / (1 + std::exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

// |C - R| <= u_out |R| + (1 + u_out) gamma(n, u) g + (k + 1) tiny (Higham, Accuracy and Stability, ch. 3; mixed
// formats: Blanchard et al., SIAM J. Sci. Comput. 2020), with gamma of the reference's own f64 sums added. GELU,
// nowhere steeper than 1.13, may be wrong by 8 units of its argument besides.
class bound {
 public:
  bound(const error_model &u, std::int64_t k, int pieces)
      : u_(u), tiny_(double(k + 1) * u.tiny), gamma_(u.operands + gamma(k + 3 + pieces, u.sums) + gamma(k, 0x1p-53)) {}

  double of(const dot &sum, double wanted, sg_activation activation) const {
    double error = gamma_ * sum.magnitude;
    if (activation == SG_ACTIVATION_GELU) error = 1.13 * error + (8 * u_.sums + 0x1p-50) * std::fabs(sum.sum);
    return u_.result * std::fabs(wanted) + (1 + u_.result) * error + tiny_;
  }
  double relative() const { return gamma_; }
  // The error as a fraction of the bound; above 1 is wrong.
  double ratio(double value, const dot &sum, sg_activation activation) const {
    const double wanted = activated(activation, sum.sum), allowed = of(sum, wanted, activation);
    if (!std::isfinite(wanted))
      return std::isnan(wanted) == std::isnan(value) && (std::isnan(value) || value == wanted) ? 0 : wrong;
    if (std::isinf(value))
      return std::signbit(value) == std::signbit(wanted) && std::fabs(wanted) + allowed >= u_.largest && u_.largest > 0
                 ? 0
                 : wrong;
    if (std::isnan(value)) return wrong;
    const double error = std::fabs(value - wanted);
    return error == 0 ? 0 : allowed > 0 ? error / allowed : wrong;
  }

 private:
  static double gamma(double n, double u) {
    return n * u < 1 ? n * u / (1 - n * u) : std::numeric_limits<double>::infinity();
  }
  static constexpr double wrong = std::numeric_limits<double>::infinity();
  error_model u_;
  double tiny_, gamma_;
};

void merge(verification &total, const verification &part) {
  total.elements += part.elements;
  total.wrong += part.wrong;
  if (part.worst > total.worst)
    total.worst = part.worst, total.worst_row = part.worst_row, total.worst_col = part.worst_col;
}

}  // namespace

verification verify_gemm(const matrix &a, sg_transpose op_a, const matrix &b, sg_transpose op_b, const matrix &c,
                         const epilogue &end, sg_compute compute, int pieces, const std::function<void(double)> &tell) {
  const rows left = rows_of_left(a, op_a), right = rows_of_right(b, op_b);
  const std::int64_t parts = is_complex(a.dtype) ? 2 : 1;
  const bound limit(model_of(a.dtype, c.dtype, compute), left.length, pieces + 1);
  const bool per_column = end.bias && end.bias->rows == 1 && end.bias->cols == c.cols;
  const auto sum_of = [&](std::int64_t i, std::int64_t j) {
    dot sum = dot_product(left.row(i), right.row(j), left.length);
    if (!end.bias) return sum;
    const auto added = per_column ? element(*end.bias, 0, j) : element(*end.bias, i / parts, 0);
    const double part = i % parts ? added.imag() : added.real();
    sum.sum += part;
    sum.magnitude += std::fabs(part);
    return sum;
  };
  constexpr std::int64_t strip = 16,
                         panel = 64;  // a panel of right rows stays in cache while a strip of left rows passes

  const std::int64_t strips = (left.count + strip - 1) / strip;
  std::atomic<std::int64_t> next{0}, done{0};
  const auto check_strip = [&](std::int64_t first, verification &found) {
    const std::int64_t last = std::min(first + strip, left.count);
    for (std::int64_t j0 = 0; j0 < right.count; j0 += panel)
      for (std::int64_t i = first; i < last; ++i)
        for (std::int64_t j = j0; j < std::min(j0 + panel, right.count); ++j) {
          const auto value = element(c, i / parts, j);
          const double ratio = limit.ratio(i % parts ? value.imag() : value.real(), sum_of(i, j), end.activation);
          ++found.elements;
          if (ratio > 1) ++found.wrong;
          if (ratio > found.worst) found.worst = ratio, found.worst_row = i / parts, found.worst_col = j;
        }
  };
  const auto work = [&](verification &found, const std::function<void(double)> &report) {
    for (std::int64_t s; (s = next++) < strips;) {
      check_strip(s * strip, found);
      report(double(++done) / double(strips));
    }
  };

  std::vector<verification> found(std::max(1u, std::thread::hardware_concurrency()));
  {
    std::vector<std::jthread> helpers;
    for (std::size_t t = 1; t < found.size(); ++t) helpers.emplace_back([&, t] { work(found[t], [](double) {}); });
    work(found[0], tell);
  }
  verification total;
  for (const auto &part : found) merge(total, part);
  return total;
}

double error_bound_of_f32(sg_compute compute, std::int64_t k, int pieces) {
  return bound(model_of(SG_DTYPE_F32, SG_DTYPE_F32, compute), k, pieces).relative();
}

}  // namespace sg::cli
