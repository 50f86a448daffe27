// SPDX-License-Identifier: Apache-2.0
// Matrices of a test as whole ones in extended precision.
#pragma once

#include <limits>

#include "../../reference/triangles.hpp"
#include "support/strided_matrix.hpp"

namespace sg_test {

using sg_reference::dense;
constexpr sg_dtype blas_types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_C64, SG_DTYPE_C128};

inline dense dense_of(strided_matrix &x) {
  dense all(x.view.rows, x.view.cols);
  for (std::int64_t i = 0; i < all.rows; ++i)
    for (std::int64_t j = 0; j < all.cols; ++j) all.at(i, j) = x.get_number(i, j);
  return all;
}

inline void fill(strided_matrix &x, random_source &from) {
  for (std::int64_t i = 0; i < x.view.rows; ++i)
    for (std::int64_t j = 0; j < x.view.cols; ++j) x.set_number(i, j, from.of(x.view.dtype));
}

inline void spoil_outside(strided_matrix &x, sg_triangle triangle) {
  const long double nan = std::numeric_limits<long double>::quiet_NaN();
  for (std::int64_t i = 0; i < x.view.rows; ++i)
    for (std::int64_t j = 0; j < x.view.cols; ++j)
      if (!sg_reference::is_within(triangle, i, j)) x.set_number(i, j, {nan, nan});
}

inline number factor_of(const sg_scalar &x, sg_dtype type) { return {x.re, is_complex(type) ? x.im : 0}; }
inline long double rounding_of(sg_dtype type) {
  return std::ldexp(1.0L, type == SG_DTYPE_F64 || type == SG_DTYPE_C128 ? -53 : -24);
}

// With a memory limit of so many elements.
inline context context_of_elements(const char *device, sg_dtype type, std::int64_t elements) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = device;
  options.flags = SG_CONTEXT_CHECK_HAZARDS;
  options.memory_limit = std::uint64_t(elements) * sg_dtype_size(type);
  context made;
  EXPECT_OK(sg_context_create(&options, made.out()));
  return made;
}

}  // namespace sg_test
