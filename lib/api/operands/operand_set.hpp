// SPDX-License-Identifier: Apache-2.0
// The operands of one submission: their checks, memory spaces, addresses and accesses, and the rule that written memory
// overlaps no other operand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "api/operands/given_operand.hpp"
#include "ops/binding.hpp"
#include "ops/view.hpp"
#include "plan/schedule/operand.hpp"
#include "run/context.hpp"
#include "run/order/access.hpp"
#include "run/order/strided_bytes.hpp"

namespace sg {

class operand_set {
 public:
  static constexpr std::size_t most_operands = 24;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // An operand that is in the set.
  struct bound {
    const char *desc = nullptr, *name = nullptr;  // in messages
    std::size_t parameter = 0;
    const void *given = nullptr;         // the caller's address
    const void *const *field = nullptr;  // in the descriptor; nullptr: unknown
    std::uint32_t first = 0, count = 0;  // accesses
    std::size_t may_become = none;       // as in rules
    std::size_t is = none;               // an operand before it, which it is itself
    std::int64_t bytes = 0, alignment = 1;
    memory_space space;
  };

  // What the job does with an operand, and what is allowed.
  struct rules {
    access_mode mode = access_mode::read;
    std::size_t may_become = none;  // the parameter of a result that it may be itself
    strided_bytes set{};            // its bytes, if they are not those of the stored matrix
    std::int64_t alignment = 0;     // of the address, if it is more than that of a component
    bool exact = true;              // otherwise some of the bytes may be untouched
  };
  // `absent`: the memory of operands without an address, of a plan made ahead; empty: each has one.
  operand_set(const context &on, std::optional<sg_memory_kind> absent) noexcept : on_(on), absent_(absent) {}

  // Binds an operand as stored, with elements, and sets its memory space. Throws sg::error naming it. The names must
  // outlive the set.
  void add(std::size_t parameter, const given_operand &x, operand &stored, const rules &how);
  // An operand whose address and memory space the caller has checked and bound; `all`: every byte of the set is
  // accessed.
  void add_bytes(const bound &one, const strided_bytes &set, access_mode mode, bool all = true);

  // The same operand as another parameter.
  void add_again(const bound &known, std::size_t parameter);

  void set_scalars(double alpha, double beta) noexcept {
    where_.first.scalars.alpha = {alpha, 0};
    where_.first.scalars.beta = {beta, 0};
  }
  bool writes() const noexcept { return writes_; }
  const context &on() const noexcept { return on_; }
  binding &where() noexcept { return where_; }
  const binding &where() const noexcept { return where_; }
  std::span<const access> accesses() const noexcept { return accesses_; }
  std::span<const bound> operands() const noexcept { return operands_; }

 private:
  bool is_same(const bound &one, const bound &other) const noexcept;

  const context &on_;
  const std::optional<sg_memory_kind> absent_;
  bool writes_ = false;
  binding where_;
  std::vector<bound> operands_;
  std::vector<access> accesses_;
};

}  // namespace sg
