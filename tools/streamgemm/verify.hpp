// SPDX-License-Identifier: Apache-2.0
// Compares every element of C with a reference of this program's own.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>
#include <functional>

#include "matrix.hpp"

namespace sg::cli {

struct verification {
  std::int64_t elements = 0;  // real and imaginary parts count one each
  std::int64_t wrong = 0;     // outside their error bound
  double worst = 0;           // largest error as a fraction of its bound
  std::int64_t worst_row = 0, worst_col = 0;
  bool passed() const { return wrong == 0; }
};

// Bias: a row with a value for each column of C, or a column with one for each row; NULL: none.
struct epilogue {
  const matrix *bias = nullptr;
  sg_activation activation = SG_ACTIVATION_NONE;
};

// C = activation(op_a(A) * op_b(B) + bias), computed under `compute` as at most `pieces` partial sums for an element.
// `tell` receives the progress, 0 to 1, on the calling thread.
verification verify_gemm(const matrix &a, sg_transpose op_a, const matrix &b, sg_transpose op_b, const matrix &c,
                         const epilogue &end, sg_compute compute, int pieces, const std::function<void(double)> &tell);

// The allowed error of an f32 result of that depth, relative to the product of the magnitudes; it has at most `pieces`
// partial sums.
double error_bound_of_f32(sg_compute compute, std::int64_t k, int pieces);

}  // namespace sg::cli
