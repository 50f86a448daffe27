// SPDX-License-Identifier: Apache-2.0
// The addresses of a schedule's buffers and the scalars in one run.
#pragma once

#include <streamgemm/types.h>

#include <vector>

#include "ops/view.hpp"

namespace sg {

// One operand: its first element, or one pointer for each item of the batch (`items` is owned by the binding's owner).
struct operand_address {
  char *base = nullptr;
  char *const *items = nullptr;
};

// The operands and scalars of one problem.
struct problem_binding {
  operand_address operands[operands_of_problem];
  sg_scalar alpha{1, 0}, beta{0, 0};
};

struct binding {
  problem_binding first;                      // of problem 0
  std::vector<problem_binding> others;        // of problems 1, 2, ... of a group
  std::vector<std::vector<char *>> pointers;  // storage of `items`
  char *device_arena = nullptr;
  char *staging_arena = nullptr;

  const problem_binding &problem(std::int32_t group) const noexcept {
    return group == 0 ? first : others[static_cast<std::size_t>(group) - 1];
  }
  // A copy with its own pointer arrays.
  binding copy() const {
    binding made{first, others, pointers, nullptr, nullptr};
    const auto repoint = [&](problem_binding &problem) {
      for (operand_address &operand : problem.operands)
        for (std::size_t i = 0; operand.items && i < pointers.size(); ++i)
          if (operand.items == pointers[i].data()) {
            operand.items = made.pointers[i].data();
            break;
          }
    };
    repoint(made.first);
    for (problem_binding &each : made.others) repoint(each);
    return made;
  }
  void clear() noexcept {
    others.clear();
    pointers.clear();
    device_arena = staging_arena = nullptr;
  }
};

// Address of the first element of item `item` of a view.
char *address_of(const buffer_list &buffers, const view &v, const binding &where, std::int64_t item);
inline bool is_zero(const sg_scalar &s) noexcept { return s.re == 0 && s.im == 0; }

// The value of a scalar. `own`: the job's.
sg_scalar value_of(scalar_role role, const sg_scalar &own) noexcept;

}  // namespace sg
