// SPDX-License-Identifier: Apache-2.0
// The gradients of a norm of each row as one schedule: block by block of rows, dX and the products of dY with the
// normalized X, whose columns are summed for dgamma, and those of dY for dbeta.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "plan/form/form.hpp"
#include "plan/schedule/operand.hpp"

namespace sg {

struct norm_backward_form {
  enum parameter : std::size_t { dx, dy, x, gamma, dgamma, dbeta };
  static constexpr std::size_t parameters = 6;

  sg_norm_kind kind = SG_NORM_LAYER;
  double epsilon = 0;
  std::int64_t rows = 0, columns = 0;              // of the caller's matrices
  std::array<operand, parameters> operands{};      // as stored; without elements: there is none
  std::array<bool, parameters> is_column_major{};  // of dX, dY and X
  bool operator==(const norm_backward_form &) const = default;
};

schedule plan_of(const norm_backward_form &f, const plan_terms &terms);
void visit_operands(norm_backward_form &f, const operand_visitor &visit);
std::uint64_t hash_of(const norm_backward_form &f) noexcept;
std::string description_of(const norm_backward_form &f);

}  // namespace sg
