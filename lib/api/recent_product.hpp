// SPDX-License-Identifier: Apache-2.0
// Products that a thread has submitted lately. One that differs from such a one in its addresses only needs no second
// check of its shape and no second look for its plan, which are more than a third of a submission's instructions.
// Sixty-four are remembered: a server's requests come in some dozen shapes.
#pragma once

#include <streamgemm/gemm.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "api/problem_of.hpp"
#include "ops/binding.hpp"
#include "run/order/tracker.hpp"
#include "run/program/compiled_plan.hpp"

namespace sg {

class context;

class recent_product {
 public:
  // The calling thread's of the same form; nullptr when it has none. `latency`: as in plan_request.
  static recent_product *find(const context &on, const sg_gemm_desc &desc, bool latency) noexcept;
  // The calling thread's place for one of that form; nullptr when it has none (thread_owned).
  static recent_product *place_for(const context &on, const sg_gemm_desc &desc, bool latency) noexcept;

  // Whether `desc` differs from this product in its addresses only.
  bool has_form_of(const context &on, const sg_gemm_desc &desc, bool latency = false) const noexcept;
  // Where the operands of one of this form lie, and what it touches.
  struct instance {
    problem_binding where;
    access accesses[4];
  };
  // That of `desc`, of this form; nothing when there is something to say to the caller of its addresses.
  std::optional<instance> again(const context &on, const sg_gemm_desc &desc) const noexcept;
  int operand_count() const noexcept { return count_; }
  const std::shared_ptr<const compiled_plan> &plan() const noexcept { return plan_; }

  // `product` is what `desc` was checked to be. False: its descriptor does not tell all of it.
  bool remember(const context &on, const sg_gemm_desc &desc, const checked_gemm &product, bool latency = false);
  // Its plan, which is one of the planner's own choice, and of those that are worth to be kept.
  void keep(const std::shared_ptr<const compiled_plan> &plan) noexcept { plan_ = plan; }
  static bool keeps(const compiled_plan &plan) noexcept;
  // Whether the two differ in their addresses only.
  bool is_same(const recent_product &other) const noexcept;

 private:
  struct table;
  std::uint64_t context_ = 0;  // its number; 0: none
  bool latency_ = false;
  std::uint64_t mixed_ = 0;          // of its parts: tells most products apart
  alignas(16) sg_gemm_desc form_{};  // its addresses mean nothing; read by vector instructions
  int count_ = 3;                    // operands: A, B and C of the column-major problem, and its bias if it has one
  instance at_null_;                 // as if each lay at address 0
  std::int64_t bytes_[4] = {};
  std::uintptr_t unaligned_[4] = {};  // address bits that are not set
  memory_space places_[4] = {};
  mutable memory_map::memo found_[4];  // where its operands were the last time
  std::shared_ptr<const compiled_plan> plan_;
};

}  // namespace sg
