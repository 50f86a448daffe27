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
  // One of the calling thread's that `descs` are, at addresses that leave nothing to say to the caller but for what
  // they are to each other; then these, and what all touch. nullptr: there is none. Throws std::bad_alloc.
  static const recent_group *find(const context &on, const sg_gemm_desc *descs, std::size_t count, binding &where,
                                  group_accesses &accesses);
  const std::shared_ptr<const program> &plan() const noexcept { return plan_; }

  // The next product of a group in the making, checked. Throws std::bad_alloc.
  void add(const context &on, const sg_gemm_desc &desc, const checked_gemm &product);
  // All have been added; their plan is one of the planner's own choice. The calling thread remembers the group, unless
  // its descriptors do not tell all of it, or it is a large one.
  static void remember(recent_group &&made, const std::shared_ptr<const program> &plan) noexcept;

 private:
  struct table;
  static constexpr std::size_t most_distinct = 64, most_products = 4096;

  bool again(const context &on, const sg_gemm_desc *descs, binding &where, group_accesses &accesses) const;

  std::vector<recent_product> distinct_;
  std::vector<std::uint8_t> which_;  // of them, by product
  bool is_known_ = true;             // each product so far can be told by its descriptor
  std::shared_ptr<const program> plan_;
};

}  // namespace sg
