// SPDX-License-Identifier: Apache-2.0
// What the operations of triangular.h and symmetric.h share: their checks, and their matrices as stored.
#pragma once

#include "api/submission/layer.hpp"

namespace sg {

inline void require_blas_type(const given_operand &result) {
  const sg_dtype type = result.view.dtype;
  if (is_complex(type) || type == SG_DTYPE_F64 || type == SG_DTYPE_F32) return;
  throw error(SG_STATUS_UNSUPPORTED, "@%s->%s.dtype is %s; it must be f64, f32, c64 or c128", result.desc, result.name,
              name_of(type));
}

inline void require_type_of(const given_operand &x, const given_operand &result) {
  if (x.view.dtype == result.view.dtype) return;
  throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s.dtype is %s and @%s->%s.dtype is %s; they must be equal", x.desc,
              x.name, name_of(x.view.dtype), result.desc, result.name, name_of(result.view.dtype));
}

// `what`: "side" in "5, which is no side".
inline void require_choice(int value, int last, const char *desc, const char *field, const char *what) {
  if (value < 0 || value > last)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s->%s is %d, which is no %s", desc, field, value, what);
}

// A square matrix that is a factor of the result on that side.
inline void require_factor(const given_operand &a, sg_side side, const given_operand &result) {
  const std::int64_t order = side == SG_SIDE_LEFT ? result.view.rows : result.view.cols;
  require_extent(a, order, order, result);
  require_type_of(a, result);
}

// With a result whose transpose is stored, the factors change places; a matrix whose transpose is stored has its lower
// triangle where the upper one is.
inline sg_side side_as_stored(sg_side side, const sg_matrix &result) noexcept {
  if (result.layout == SG_LAYOUT_COLUMN_MAJOR) return side;
  return side == SG_SIDE_LEFT ? SG_SIDE_RIGHT : SG_SIDE_LEFT;
}
inline sg_triangle triangle_as_stored(sg_triangle triangle, const sg_matrix &of) noexcept {
  if (of.layout == SG_LAYOUT_COLUMN_MAJOR) return triangle;
  return triangle == SG_TRIANGLE_LOWER ? SG_TRIANGLE_UPPER : SG_TRIANGLE_LOWER;
}

inline stored_part part_of(sg_triangle as_stored) noexcept {
  return as_stored == SG_TRIANGLE_LOWER ? stored_part::lower : stored_part::upper;
}

// The columns of a product are independent if the square factor is on the left, its rows otherwise.
inline command_form::split split_of(sg_side as_stored) noexcept {
  return as_stored == SG_SIDE_LEFT ? command_form::split::columns : command_form::split::rows;
}

}  // namespace sg
