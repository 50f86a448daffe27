// SPDX-License-Identifier: Apache-2.0
// A dense matrix in host memory, and its elements as numbers.
#pragma once

#include <streamgemm/types.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sg::cli {

struct matrix {
  sg_dtype dtype = SG_DTYPE_F32;
  sg_layout layout = SG_LAYOUT_ROW_MAJOR;
  std::int64_t rows = 0, cols = 0;  // tight: no gap between rows (columns)
  std::vector<std::byte> bytes;

  sg_matrix view() { return {bytes.data(), rows, cols, 0, dtype, layout}; }
};

// Allocates a zero matrix; throws failure when it is too large.
matrix make_matrix(sg_dtype dtype, sg_layout layout, std::int64_t rows, std::int64_t cols);

bool is_complex(sg_dtype dtype);

// Element (row, col). Every element type is exact in f64, the widest component type.
std::complex<double> element(const matrix &from, std::int64_t row, std::int64_t col);

// The same matrix as f32, f64, bf16 or f8 (rounded to nearest, ties to even; beyond e5m2's range infinity, beyond
// e4m3's NaN). Throws failure for other targets and for complex and integer sources.
matrix convert(const matrix &from, sg_dtype dtype);

}  // namespace sg::cli
