// SPDX-License-Identifier: Apache-2.0
// The gradients of a linear layer Y = X * W + bias as one schedule: dX = dY * W^T, dW = X^T * dY, dbias = the sums of
// dY's columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/form/form.hpp"
#include "plan/gemm/resident/problem.hpp"
#include "plan/layers/column_sums.hpp"

namespace sg {

// The problems, in this order. A result that is not computed is a problem without C. The last one, C (out x 1) =
// op_a(A) (out x rows) * ones + beta * C, has dY in any case, with groups of rows as items; no GEMM computes it. There
// are rows, inputs and outputs, or all operands are on the device.
enum linear_part : std::size_t { input_gradient, weight_gradient, bias_gradient_part };
inline constexpr std::size_t linear_parts = 3;

struct linear_problems {
  std::vector<problem> all;
  bool dy_is_a[2] = {false, false};  // in the GEMM of dX, and in that of dW

  bool operator==(const linear_problems &) const = default;
  sums_of_columns sums() const noexcept {
    const problem &p = all[bias_gradient_part];
    return {p.k, p.m, p.op_a == SG_TRANSPOSE_N, p.a.type, p.c.type, !p.beta_zero, std::int32_t(bias_gradient_part)};
  }
  bool computes(linear_part part) const noexcept { return all[part].c.rows > 0 && all[part].c.cols > 0; }
  const operand &dy() const noexcept { return all[bias_gradient_part].a; }
  const operand &x() const noexcept { return dy_is_a[1] ? all[weight_gradient].b : all[weight_gradient].a; }
  const operand &w() const noexcept { return dy_is_a[0] ? all[input_gradient].b : all[input_gradient].a; }
  std::int64_t rows() const noexcept { return all[bias_gradient_part].k; }
  std::int64_t outputs() const noexcept { return all[bias_gradient_part].m; }
  std::int64_t inputs() const noexcept {
    const std::size_t part = computes(input_gradient) ? input_gradient : weight_gradient;
    return dy_is_a[part] ? all[part].n : all[part].m;
  }
};

// The parts of form_of<linear_problems>. The bound is the least time that the model's rates allow, with dY over the
// link once.
schedule plan_of(const linear_problems &p, const plan_terms &terms);
std::uint64_t hash_of(const linear_problems &p) noexcept;
std::string description_of(const linear_problems &p);
std::vector<alternative> alternatives_to(const linear_problems &p, const device_model &model,
                                         const plan_request &request);

}  // namespace sg
