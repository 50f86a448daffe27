// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/fill.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "api/operations/operations.hpp"
#include "api/submission/layer.hpp"

namespace sg {

namespace {

// A binary format of at most 16 bits. Without infinity all exponents are those of numbers, and the last number is NaN.
struct short_format {
  int exponent_bits, fraction_bits;
  bool has_infinity;

  std::uint64_t top() const noexcept { return ((1u << exponent_bits) - 1u) << fraction_bits; }
  std::uint64_t nan() const noexcept {
    return has_infinity ? top() + (1u << (fraction_bits - 1)) : top() + (1u << fraction_bits) - 1;
  }
  std::uint64_t largest() const noexcept { return (has_infinity ? top() : nan()) - 1; }
  int least_exponent() const noexcept { return 2 - (1 << (exponent_bits - 1)); }

  // The bits of a finite number, rounded to nearest, ties to even; more than largest() if it is beyond that.
  std::uint64_t rounded(double magnitude) const noexcept {
    const int exponent = std::max(magnitude > 0 ? std::ilogb(magnitude) : least_exponent(), least_exponent());
    const double scaled = std::ldexp(magnitude, fraction_bits - exponent), down = std::floor(scaled);
    auto fraction = static_cast<std::uint64_t>(down);
    if (scaled - down > 0.5 || (scaled - down == 0.5 && fraction % 2 != 0)) ++fraction;
    return (static_cast<std::uint64_t>(exponent - least_exponent()) << fraction_bits) + fraction;
  }
};

short_format format_of(sg_dtype type) noexcept {
  switch (type) {
    case SG_DTYPE_F16: return {5, 10, true};
    case SG_DTYPE_BF16: return {8, 7, true};
    case SG_DTYPE_F8_E5M2: return {5, 2, true};
    default: return {4, 3, false};  // f8_e4m3
  }
}

std::uint64_t short_bits(const char *desc, double value, sg_dtype type) {
  const short_format format = format_of(type);
  const std::uint64_t sign = std::signbit(value) ? 1u << (format.exponent_bits + format.fraction_bits) : 0u;
  if (std::isnan(value)) return sign | format.nan();
  if (std::isinf(value) && format.has_infinity) return sign | format.top();
  const std::uint64_t bits = std::isinf(value) ? format.largest() + 1 : format.rounded(std::fabs(value));
  if (bits > format.largest())
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->value.re is %g; it must be a number that %s can hold", desc, value,
                name_of(type));
  return sign | bits;
}

// The element's bytes, repeated, in the place of a scalar.
sg_scalar pattern_of(const char *desc, const sg_scalar &value, sg_dtype type) {
  sg_scalar pattern;
  const auto repeat = [&](auto element) {
    auto *const bytes = reinterpret_cast<unsigned char *>(&pattern);
    for (std::size_t at = 0; at < sizeof pattern; at += sizeof element)
      std::memcpy(bytes + at, &element, sizeof element);
  };
  if (type == SG_DTYPE_I8 && !(value.re >= -128 && value.re <= 127 && value.re == std::floor(value.re)))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->value.re is %.17g; an i8 result needs an integer of 8 bits", desc,
                value.re);
  const sg_scalar held = size_of(type) > 2 ? checked_scalar(desc, "value", value, type) : value;
  switch (type) {
    case SG_DTYPE_F64: repeat(held.re); break;
    case SG_DTYPE_F32: repeat(static_cast<float>(held.re)); break;
    case SG_DTYPE_C64: repeat(std::array{static_cast<float>(held.re), static_cast<float>(held.im)}); break;
    case SG_DTYPE_C128: repeat(std::array{held.re, held.im}); break;
    case SG_DTYPE_I32: repeat(static_cast<std::int32_t>(held.re)); break;
    case SG_DTYPE_I8: repeat(static_cast<std::int8_t>(held.re)); break;
    case SG_DTYPE_F16:
    case SG_DTYPE_BF16: repeat(static_cast<std::uint16_t>(short_bits(desc, held.re, type))); break;
    default: repeat(static_cast<std::uint8_t>(short_bits(desc, held.re, type))); break;
  }
  return pattern;
}

}  // namespace

void submit(context &on, const sg_fill_desc &d, const char *name, checked_submit &order, sg_job **out_job) {
  const given_operand y = given_by_rows(name, "y", d.y);
  check_view(y);
  layer made(on, order);
  made.by_rows = y.view.layout == SG_LAYOUT_ROW_MAJOR;
  made.set_operation(ops::fill{}, "fill", 0, command_form::split::either);
  made.bound.where().first.scalars.alpha = pattern_of(name, d.value, y.view.dtype);
  add_matrix(made, y, ops::fill::y);
  auto wanted = backend_command<sg_backend_fill>();
  wanted.type = y.view.dtype;
  bind_layer(made, wanted.header, made.form.strategy);
  submit_layer(on, made, SG_OPERATION_FILL, d, name, order, out_job);
}

}  // namespace sg
