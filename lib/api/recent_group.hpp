// SPDX-License-Identifier: Apache-2.0
// Groups of products that a thread has submitted lately. One that differs from such a one in its addresses only needs
// no second check of its shapes and no second look for its plan. Four are remembered: layers use theirs in turn.
#pragma once

#include <streamgemm/gemm.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/accesses.hpp"
#include "api/recent_product.hpp"

namespace sg {

class recent_group {
 public:
  // The calling thread's place for groups like this one, as far as its first product says; nullptr when it has none
  // (thread_owned).
  static recent_group *like(const context &on, const sg_gemm_desc *descs, std::size_t count) noexcept;

  // Whether `descs` are these products at addresses that leave nothing to say to the caller, but for what they are to
  // each other; if so, these, and what all touch. Throws std::bad_alloc.
  bool again(const context &on, const sg_gemm_desc *descs, std::size_t count, binding &where,
             group_accesses &accesses) const;
  const std::shared_ptr<const compiled_plan> &plan() const noexcept { return plan_; }

  void forget() noexcept;
  // The next product of the group that comes, checked. Throws std::bad_alloc.
  void add(const context &on, const sg_gemm_desc &desc, const checked_gemm &product);
  // All have been added; their plan is one of the planner's own choice. Large ones are not kept.
  void keep(const std::shared_ptr<const compiled_plan> &plan) noexcept;

 private:
  struct table;
  static constexpr std::size_t most_distinct = 64, most_products = 4096;

  std::vector<recent_product> distinct_;
  std::vector<std::uint8_t> which_;  // of them, by product
  bool is_known_ = true;             // each product so far can be told by its descriptor
  std::shared_ptr<const compiled_plan> plan_;
};

}  // namespace sg
