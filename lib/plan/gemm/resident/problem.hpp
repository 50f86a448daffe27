// SPDX-License-Identifier: Apache-2.0
// A validated request in the planner's form: column major, shapes and memory spaces, no pointers. Requests with equal
// problems share a plan.
#pragma once

#include <cstdint>

#include "plan/schedule/operand.hpp"

namespace sg {

// C_i = activation(alpha * op_a(A_i) * op_b(B_i) + beta * C_i + bias_i) for i < batch. All of m, n, batch are > 0; k
// may be 0.
struct problem {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  sg_transpose op_a = SG_TRANSPOSE_N, op_b = SG_TRANSPOSE_N;
  sg_compute compute = SG_COMPUTE_EXACT;
  operand a, b, c;
  bool no_multiply = false;  // alpha == 0 or k == 0: A and B are not read
  bool beta_zero = true;     // C is not read
  operand bias;              // m x 1: a value for each row of C; 1 x n: for each column; 0 x 0: no bias
  sg_activation activation = SG_ACTIVATION_NONE;
  bool downcast_to_bf16 = false;  // set by the planner: A and B, of f32, are rounded to bf16 while staged

  bool operator==(const problem &) const = default;

  bool has_bias() const noexcept { return bias.rows > 0; }
  bool has_epilogue() const noexcept { return has_bias() || activation != SG_ACTIVATION_NONE; }
  // The problem with bf16 factors, as the link and the device see it.
  problem as_on_device() const noexcept {
    problem p = *this;
    if (!downcast_to_bf16) return p;
    p.a.type = p.b.type = SG_DTYPE_BF16;
    p.compute = SG_COMPUTE_EXACT;
    p.downcast_to_bf16 = false;
    return p;
  }
  // The same with pageable operands as pinned ones: a search needs no staging commands, which are many.
  problem without_staging() const noexcept {
    problem p = as_on_device();
    for (operand *x : {&p.a, &p.b, &p.c, &p.bias})
      if (x->space == SG_MEMORY_PAGEABLE) x->space = SG_MEMORY_PINNED;
    return p;
  }
  double flops() const noexcept {
    return no_multiply ? 0.0 : flops_per_mac(a.type) * double(m) * double(n) * double(k) * double(batch);
  }
  // Bytes of an operand's distinct elements, without gaps.
  static double bytes(const operand &x, std::int64_t batch) noexcept {
    const bool shared = !x.pointer_array && x.item_stride == 0;
    return double(x.rows) * double(x.cols) * double(size_of(x.type)) * double(shared ? 1 : batch);
  }
};

inline hasher &operator<<(hasher &to, const problem &p) noexcept {
  if (p.has_epilogue()) to << p.bias << std::int64_t{p.activation};
  return to << p.m << p.n << p.k << p.batch << p.a << p.b << p.c
            << (std::int64_t{p.op_a} | std::int64_t{p.op_b} << 4 | std::int64_t{p.compute} << 8 |
                std::int64_t{p.no_multiply} << 16 | std::int64_t{p.beta_zero} << 17);
}

// The parameters of a group of problems: those of each, in this order.
enum class operand_name : std::uint8_t { a, b, c, bias };
inline constexpr std::int32_t operands_of_problem = 4;
inline std::int32_t parameter_of(std::int32_t group, operand_name name) noexcept {
  return operands_of_problem * group + std::int32_t(name);
}

inline const operand &operand_of(const problem &p, operand_name name) {
  switch (name) {
    case operand_name::a: return p.a;
    case operand_name::b: return p.b;
    case operand_name::c: break;
    case operand_name::bias: return p.bias;
  }
  return p.c;
}
}  // namespace sg
