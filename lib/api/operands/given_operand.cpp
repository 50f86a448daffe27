// SPDX-License-Identifier: Apache-2.0
#include "api/operands/given_operand.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/operands/operand_bytes.hpp"
#include "base/dtype.hpp"
#include "base/error.hpp"
#include "run/order/footprint.hpp"

namespace sg {

namespace {

using long_long = long long;

void check_pointer(const void *pointer, const given_operand &x, sg_dtype type, std::int64_t item) {
  if (!has_address(pointer)) require_address(pointer, name_of_pointer(x, item).c_str());
  const std::int64_t component = is_complex(type) ? size_of(type) / 2 : size_of(type);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if ((address & static_cast<std::uintptr_t>(component - 1)) != 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s is %p, which is not aligned to %lld bytes",
                name_of_pointer(x, item).c_str(), pointer, long_long{component});
}

}  // namespace

sg_matrix by_rows_if_both(sg_matrix view) noexcept {
  const bool is_valid = view.rows >= 0 && view.cols >= 0 && (view.ld == 0 || view.ld >= view.rows);
  if (view.layout != SG_LAYOUT_COLUMN_MAJOR || !is_valid) return view;
  const bool is_column = view.cols == 1, is_row = view.rows == 1 && view.ld <= 1;
  if (!is_column && !is_row && view.rows > 0 && view.cols > 0) return view;
  view.layout = SG_LAYOUT_ROW_MAJOR;
  view.ld = is_column ? 1 : 0;
  return view;
}

given_operand given_matrix(const char *desc, const char *name, const sg_matrix &of) noexcept {
  return {desc, name, of, nullptr, 0, ".data", &of.data};
}

given_operand given_by_rows(const char *desc, const char *name, const sg_matrix &of) noexcept {
  return {desc, name, by_rows_if_both(of), nullptr, 0, ".data", &of.data};
}

std::string name_of_pointer(const given_operand &x, std::int64_t item) {
  const std::string name = std::string(x.desc) + "->" + x.name;
  return item < 0 ? name + x.data : name + "_array[" + std::to_string(item) + "]";
}

void check_view(const given_operand &x) {
  const sg_matrix &v = x.view;
  if (!is_dtype(v.dtype))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.dtype is %d, which is no type", x.desc, x.name, int{v.dtype});
  if (v.layout != SG_LAYOUT_ROW_MAJOR && v.layout != SG_LAYOUT_COLUMN_MAJOR)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.layout is %d, which is no layout", x.desc, x.name, int{v.layout});
  if (v.rows < 0 || v.cols < 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is %lld x %lld; sizes are not negative", x.desc, x.name,
                long_long{v.rows}, long_long{v.cols});
  const std::int64_t least = v.layout == SG_LAYOUT_ROW_MAJOR ? v.cols : v.rows;
  if (v.ld != 0 && v.ld < least)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.ld is %lld; a %s matrix of %lld x %lld needs at least %lld",
                x.desc, x.name, long_long{v.ld}, name_of(v.layout), long_long{v.rows}, long_long{v.cols},
                long_long{least});
}

operand stored(const given_operand &x, std::int64_t batch) {
  const sg_matrix &v = x.view;
  const bool by_rows = v.layout == SG_LAYOUT_ROW_MAJOR;
  operand o;
  o.rows = by_rows ? v.cols : v.rows;
  o.cols = by_rows ? v.rows : v.cols;
  o.ld = v.ld != 0 ? v.ld : std::max<std::int64_t>(1, o.rows);
  o.type = v.dtype;
  o.pointer_array = x.array != nullptr;
  o.item_stride = batch > 1 && !x.array ? x.stride : 0;
  return o;
}

sg_transpose op_on_stored(const given_operand &x, sg_transpose op, sg_layout c_layout) {
  if (op < SG_TRANSPOSE_N || op > SG_TRANSPOSE_C)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->op_%s is %d, which is no op", x.desc, x.name, int{op});
  const bool complex = is_complex(x.view.dtype);
  if (op == SG_TRANSPOSE_C && !complex) op = SG_TRANSPOSE_T;
  if (x.view.layout == c_layout) return op;
  if (op == SG_TRANSPOSE_C)
    throw error(SG_STATUS_UNSUPPORTED,
                "@%s->op_%s is C on a complex %s matrix while the result is %s; give both one layout", x.desc, x.name,
                name_of(x.view.layout), name_of(c_layout));
  return op == SG_TRANSPOSE_N ? SG_TRANSPOSE_T : SG_TRANSPOSE_N;
}

namespace {

// The least x >= 0 for which step * x modulo `modulus` is from `least` to `most`, or -1: Euclid's algorithm, as x may
// be about as large as the modulus. 0 <= step < modulus, 0 <= least <= most < modulus.
std::int64_t least_multiple_within(std::int64_t step, std::int64_t modulus, std::int64_t least, std::int64_t most) {
  if (least == 0) return 0;
  if (step == 0) return -1;
  const std::int64_t up = (least - 1) / step + 1;
  if (up <= most / step) return up;
  // Between two multiples of the step: how often the modulus was passed, for which the distance to the next one fits.
  const std::int64_t passed = least_multiple_within(modulus % step, step, step - most % step, step - least % step);
  using wide = __int128;
  return passed < 0 ? -1 : static_cast<std::int64_t>((wide{modulus} * passed + least - 1) / step + 1);
}

// Whether no two items share an element. Two items do if the distance between them, within the span, is less than a
// column's rows before or behind a multiple of ld.
bool items_are_disjoint(const operand &o, std::int64_t stride, std::int64_t span, std::int64_t batch) {
  if (stride >= span) return true;
  if (stride == 0 || o.rows > o.ld / 2) return false;
  const std::int64_t most = 2 * (o.rows - 1),
                     first = (stride % o.ld + o.rows - 1) % o.ld;  // of the distance + rows - 1
  if (first <= most) return false;
  const std::int64_t more = least_multiple_within(stride % o.ld, o.ld, o.ld - first, o.ld - first + most);
  return more < 0 || more + 1 >= batch || more + 1 > (span - 1) / stride;
}

}  // namespace

void check_stride(const given_operand &x, const operand &o, std::int64_t batch, bool written) {
  if (batch == 1 || x.array) return;
  if (x.stride < 0)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->stride_%s is %lld; strides are not negative", x.desc, x.name,
                long_long{x.stride});
  if (!written || o.rows == 0 || o.cols == 0) return;
  const std::int64_t span = span_bytes(o, x.name) / size_of(o.type);
  if (!items_are_disjoint(o, x.stride, span, batch))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->stride_c is %lld; items of C that span %lld elements would overlap",
                x.desc, long_long{x.stride}, long_long{span});
}

void bind_operand(const given_operand &x, const operand &o, std::int64_t batch, bool touched, parameter_address &where,
                  std::vector<std::vector<char *>> &storage) {
  if (x.array) {
    std::vector<char *> items(static_cast<std::size_t>(batch));
    for (std::int64_t i = 0; i < batch; ++i) {
      if (touched) check_pointer(x.array[i], x, o.type, i);
      items[static_cast<std::size_t>(i)] = static_cast<char *>(const_cast<void *>(x.array[i]));
    }
    storage.push_back(std::move(items));
    where.items = storage.back().data();
    return;
  }
  if (touched) check_pointer(x.view.data, x, o.type, -1);
  where.base = static_cast<char *>(x.view.data);
}

namespace {

// A part of a scalar, rounded to the accumulator's type so that every device computes with the same number.
double rounded_to_f32(const char *desc, const char *name, const char *part, double given) {
  const float rounded = static_cast<float>(given);
  if (std::isinf(rounded) && std::isfinite(given))
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.%s is %g; it is used as f32, whose largest number is %g", desc,
                name, part, given, double{std::numeric_limits<float>::max()});
  return rounded;
}

}  // namespace

sg_scalar checked_scalar(const char *desc, const char *name, const sg_scalar &s, sg_dtype out) {
  switch (accumulator_of(out)) {
    case SG_DTYPE_I32:
      if (!(s.re >= -2147483648.0 && s.re <= 2147483647.0) || s.re != std::floor(s.re))
        throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.re is %.17g; an i32 result needs an integer of 32 bits", desc,
                    name, s.re);
      return {s.re, 0};
    case SG_DTYPE_F32: return {rounded_to_f32(desc, name, "re", s.re), 0};
    case SG_DTYPE_C64: return {rounded_to_f32(desc, name, "re", s.re), rounded_to_f32(desc, name, "im", s.im)};
    case SG_DTYPE_C128: return s;
    default: return {s.re, 0};
  }
}

}  // namespace sg
