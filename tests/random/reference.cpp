// SPDX-License-Identifier: Apache-2.0
#include "reference.hpp"

#include <algorithm>
#include <cmath>

#include "../reference/functions.hpp"

namespace sg_test::random_tests {

namespace {

struct precision {
  long double accumulator, output, tiny, largest;
};

precision precision_of(const gemm_case &p) {
  const long double in_f32 = p.in == SG_DTYPE_F32 && p.compute == SG_COMPUTE_EXACT ? 0x1p-24L : 0x1p-23L;
  switch (p.out) {
    case SG_DTYPE_F64:
    case SG_DTYPE_C128: return {0x1p-53L, 0, 0x1p-1074L, 1.7976931348623157e308L};
    case SG_DTYPE_F16: return {0x1p-23L, 0x1p-11L, 0x1p-24L, 65504};
    case SG_DTYPE_BF16: return {0x1p-23L, 0x1p-8L, 0x1p-133L, 3.3895313892515355e38L};
    default: break;
  }
  // Rounding to a shorter format first may flush operands below the normal range (types.h).
  const bool is_shortened = p.in == SG_DTYPE_F32 && p.compute != SG_COMPUTE_EXACT;
  return {p.in == SG_DTYPE_C64 ? 0x1p-24L : in_f32, 0, is_shortened ? 0x1p-126L : 0x1p-149L, 3.4028234663852886e38L};
}

// The relative error of a product of two elements whose operands are rounded (types.h).
long double error_of_product(const gemm_case &p) {
  switch (p.compute) {
    case SG_COMPUTE_TF32: return 2 * 0x1p-11L + 0x1p-22L;
    case SG_COMPUTE_3XTF32: return 0x1p-17L;
    case SG_COMPUTE_BF16: return 2 * 0x1p-8L + 0x1p-16L;
    case SG_COMPUTE_BF16X3: return 0x1p-14L;
    // Hopper truncates the products that it adds at once, 32 of them, to 14 bits of the largest: 3.7 * 2^-13 of their
    // sum was observed.
    case SG_COMPUTE_F8: return 0x1p-10L;
    case SG_COMPUTE_EXACT: break;
  }
  return 0;
}

class judge {
 public:
  judge(const gemm_case &p, int parts) : p_(p), precision_(precision_of(p)) {
    const long double n = (p.complex() ? 2.0L : 1.0L) * (static_cast<long double>(p.k) + 4 + (parts > 0 ? parts : 64));
    gamma_ = n * precision_.accumulator / (1 - n * precision_.accumulator);
    const long double digits = precision_.accumulator < 0x1p-30L ? 0x1p50L
                               : p.compute == SG_COMPUTE_F8      ? 0x1p6L
                                                                 : 0x1p16L;
    // The result of an earlier step need not be an integer.
    size_of_alpha_ = std::fabs(static_cast<long double>(p.alpha.re)) + std::fabs(static_cast<long double>(p.alpha.im));
    exact_below_ = p.data == values::integers && p.a_from < 0 && p.activation != SG_ACTIVATION_GELU ? digits : 0;
  }

  // g: the sum of absolute values; products: that of the products alone. The bound is stored in `bound`. largest: of an
  // element of A or B; scales the loss where a scaled operand falls below the normal range.
  bool accepts(long double seen, long double sum, long double g, long double products, long double largest,
               long double &bound) const {
    const long double exact = sg_reference::activated(p_.activation, sum);
    bound = 0;
    if (std::isnan(exact)) return std::isnan(seen) || p_.a_from >= 0;
    if (!(g < precision_.largest / 4)) {  // a sum of its parts may overflow
      bound = HUGE_VALL;
      return true;
    }
    if (g < exact_below_) return seen == rounded(p_.out, exact);
    const bool gelu = p_.activation == SG_ACTIVATION_GELU;
    const long double error = gamma_ * g + error_of_product(p_) * products;
    // GELU is nowhere steeper than 1.13, and may be wrong by 8 units of its argument.
    const long double all = gelu ? 1.13L * error + 8 * precision_.accumulator * std::fabs(sum) : error;
    bound = precision_.output * std::fabs(exact) + (1 + precision_.output) * all +
            (static_cast<long double>(p_.k) + 1) * (1 + largest) * (1 + size_of_alpha_) * precision_.tiny;
    if (std::isinf(seen)) return std::fabs(exact) + bound >= precision_.largest && (seen > 0) == (exact > 0);
    return std::fabs(seen - exact) <= bound;
  }

 private:
  const gemm_case &p_;
  const precision precision_;
  long double gamma_ = 0, exact_below_ = 0, size_of_alpha_ = 0;  // alpha scales what is lost below the normal range
};

// An operand of one item after op, dense.
template <class R>
struct dense {
  std::vector<R> re, im;
};

template <class R>
dense<R> dense_of(const operand_image &x, sg_dtype type, sg_transpose op, std::int64_t item, std::int64_t rows,
                  std::int64_t cols, bool complex) {
  dense<R> d;
  d.re.resize(static_cast<std::size_t>(rows * cols));
  if (complex) d.im.resize(d.re.size());
  const std::int64_t size = sg_dtype_size(type);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      const std::int64_t at = op == SG_TRANSPOSE_N ? x.extent.at(item, i, j) : x.extent.at(item, j, i);
      const number value = load(type, x.bytes + at * size);
      const auto to = static_cast<std::size_t>(i * cols + j);
      d.re[to] = static_cast<R>(value.real());
      if (complex) d.im[to] = static_cast<R>(op == SG_TRANSPOSE_C ? -value.imag() : value.imag());
    }
  return d;
}

std::int32_t wrapped(std::uint64_t value) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(value)); }
std::uint64_t bits_of(long double integer) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(integer)); }

template <class R>
class checker {
 public:
  checker(const gemm_case &p, int parts, const gemm_images &images)
      : p_(p), images_(images), judge_(p, parts), reads_(p.k > 0 && !p.alpha_zero()) {}

  std::optional<fault> all() {
    for (std::int64_t item = 0; item < p_.batch; ++item) {
      load_item(item);
      for (std::int64_t i = 0; i < p_.m; ++i) {
        sums_of_row(i);
        fault seen;
        for (std::int64_t j = 0; j < p_.n; ++j)
          if (!accepts(item, i, j, seen)) {
            seen.what = "an element is wrong";
            return seen;
          }
      }
    }
    return {};
  }

  fault last_element() {
    fault seen;
    load_item(p_.batch - 1);
    sums_of_row(p_.m - 1);
    accepts(p_.batch - 1, p_.m - 1, p_.n - 1, seen);
    return seen;
  }

 private:
  void load_item(std::int64_t item) {
    if (!reads_) return;
    a_ = dense_of<R>(images_.a, p_.in, p_.op_a, item, p_.m, p_.k, p_.complex());
    b_ = dense_of<R>(images_.b, p_.in, p_.op_b, item, p_.k, p_.n, p_.complex());
    largest_ = 0;
    for (const auto *values : {&a_.re, &a_.im, &b_.re, &b_.im})
      for (const R x : *values)
        if (std::isfinite(x)) largest_ = std::max(largest_, static_cast<long double>(std::fabs(x)));
  }

  void sums_of_row(std::int64_t i) {
    const auto n = static_cast<std::size_t>(p_.n);
    re_.assign(n, 0);
    im_.assign(n, 0);
    g_.assign(n, 0);
    for (std::int64_t l = 0; reads_ && l < p_.k; ++l) {
      const auto from = static_cast<std::size_t>(i * p_.k + l), to = static_cast<std::size_t>(l * p_.n);
      const R x = a_.re[from], *y = b_.re.data() + to;
      if (!p_.complex()) {
        for (std::size_t j = 0; j < n; ++j) {
          re_[j] += x * y[j];
          g_[j] += std::fabs(x * y[j]);
        }
        continue;
      }
      const R u = a_.im[from], *v = b_.im.data() + to;
      for (std::size_t j = 0; j < n; ++j) {
        re_[j] += x * y[j] - u * v[j];
        im_[j] += x * v[j] + u * y[j];
        g_[j] += (std::fabs(x) + std::fabs(u)) * (std::fabs(y[j]) + std::fabs(v[j]));
      }
    }
  }

  number old(const operand_image &x, std::int64_t item, std::int64_t i, std::int64_t j) const {
    return load(p_.out, x.bytes + x.extent.at(item, i, j) * sg_dtype_size(p_.out));
  }
  number bias(std::int64_t item, std::int64_t i, std::int64_t j) const {
    return old(images_.bias, item, p_.bias_shape == SG_BIAS_PER_ROW ? i : j, 0);
  }

  // Whether the element is right. `found` receives the element, the expected value and the bound.
  bool accepts(std::int64_t item, std::int64_t i, std::int64_t j, fault &found) {
    const auto at = static_cast<std::size_t>(j);
    const number seen = old(images_.c, item, i, j);
    found.item = item, found.i = i, found.j = j, found.seen = seen, found.bound = 0;
    if (p_.out == SG_DTYPE_I32) {
      std::uint64_t sum = bits_of(static_cast<long double>(re_[at])) * bits_of(static_cast<long double>(p_.alpha.re));
      if (!p_.beta_zero())
        sum += bits_of(old(images_.c_before, item, i, j).real()) * bits_of(static_cast<long double>(p_.beta.re));
      if (p_.has_bias) sum += bits_of(bias(item, i, j).real());
      std::int32_t wanted = wrapped(sum);
      if (p_.activation == SG_ACTIVATION_RELU) wanted = std::max(wanted, 0);
      found.wanted = static_cast<long double>(wanted);
      return seen.real() == wanted;
    }
    const sg_scalar a = p_.used(p_.alpha), b = p_.used(p_.beta);
    const number alpha(a.re, a.im), beta(b.re, b.im);
    const auto size = [](const number &x) { return std::fabs(x.real()) + std::fabs(x.imag()); };
    number sum = 0;
    long double products = 0;
    if (reads_) {
      sum = times(alpha, number(static_cast<long double>(re_[at]), static_cast<long double>(im_[at])));
      products = size(alpha) * static_cast<long double>(g_[at]);
    }
    long double g = products;
    const auto add = [&](const number &x, const number &value) {
      sum += times(x, value);
      g += size(x) * size(value);
    };
    if (!p_.beta_zero()) add(beta, old(images_.c_before, item, i, j));
    if (p_.has_bias) add(1, bias(item, i, j));
    found.wanted = number(sg_reference::activated(p_.activation, sum.real()), sum.imag());
    const bool any_nan = p_.complex() && (std::isnan(sum.real()) || std::isnan(sum.imag()));
    // An infinite C times a scalar whose imaginary part is 0: some BLAS multiply by the real part alone.
    const bool from_infinity = std::isinf(g);
    if (any_nan)
      return std::isnan(seen.real()) || std::isnan(seen.imag()) || (from_infinity && !std::isfinite(size(seen)));
    return judge_.accepts(seen.real(), sum.real(), g, products, largest_, found.bound) &&
           (!p_.complex() || judge_.accepts(seen.imag(), sum.imag(), g, products, largest_, found.bound));
  }

  // Without the library's corrections for infinities.
  number times(const number &x, const number &y) const {
    if (!p_.complex()) return x.real() * y.real();
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  }

  const gemm_case &p_;
  const gemm_images &images_;
  const judge judge_;
  const bool reads_;
  dense<R> a_, b_;
  long double largest_ = 0;
  std::vector<R> re_, im_, g_;
};

}  // namespace

std::optional<fault> check_elements(const gemm_case &p, int parts, const gemm_images &images) {
  if (p.in == SG_DTYPE_F64 || p.in == SG_DTYPE_C128) return checker<long double>(p, parts, images).all();
  return checker<double>(p, parts, images).all();
}

fault last_element(const gemm_case &p, int parts, const gemm_images &images) {
  if (p.in == SG_DTYPE_F64 || p.in == SG_DTYPE_C128) return checker<long double>(p, parts, images).last_element();
  return checker<double>(p, parts, images).last_element();
}

}  // namespace sg_test::random_tests
