// SPDX-License-Identifier: Apache-2.0
// The form of an operation that is one command or, on cores, the same command for parts of its result. Operands of the
// other layout are transposed before it, or behind it, in the arena.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ops/command.hpp"
#include "plan/form/form.hpp"
#include "plan/schedule/operand.hpp"

namespace sg {

// Which part of an operand a part of the result's rows or columns, as stored, needs: the same, the columns for the
// rows, the whole operand, or what only the values of others tell, such as a gather's rows.
enum class share : std::uint8_t { same, transposed, whole, some };

struct command_form {
  struct parameter {
    bool given = false;
    share needed = share::same;
    operand stored;
    bool transposed = false;  // the command takes the transpose of what is stored
    stored_part accessed = stored_part::all;
    bool operator==(const parameter &) const = default;
  };
  // triangle: between the columns of a symmetric update's result (triangle_parts.hpp).
  enum class split : std::uint8_t { none, rows, columns, either, triangle };

  payload what;
  const char *strategy = "";  // a literal: follows from the payload
  double flops_per_element = 0;
  split splits = split::columns;                            // between which of the result, as stored
  std::array<parameter, command::most_views> parameters{};  // by view; the first is the result

  const operand &result() const noexcept { return parameters[0].stored; }
  access_mode mode_of(std::size_t view) const noexcept;
  bool operator==(const command_form &other) const noexcept;
};
schedule plan_of(const command_form &f, const plan_terms &terms);
void visit_operands(command_form &f, const operand_visitor &visit);
// The plan of a form with operands in any memory, which may take parts of them. `whole`: makes one that moves whole
// operands.
schedule plan_in_parts(const command_form &f, const plan_terms &terms, const std::function<schedule()> &whole);
// The bytes that the command accesses. Of an operand of which it takes some: at most an element for each element of the
// result.
double accessed_bytes(const command_form &f) noexcept;
std::uint64_t hash_of(const command_form &f) noexcept;
std::string description_of(const command_form &f);

}  // namespace sg
