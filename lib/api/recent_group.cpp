// SPDX-License-Identifier: Apache-2.0
#include "api/recent_group.hpp"

#include <algorithm>
#include <utility>

#include "base/thread_owned.hpp"

namespace sg {

struct recent_group::table {
  recent_group places[4];
  std::size_t turn = 0;
};

const recent_group *recent_group::find(const context &on, const sg_gemm_desc *descs, std::size_t count, binding &where,
                                       group_accesses &accesses) {
  const table *const latest = thread_owned<table>::get();
  if (!latest || descs->struct_size != sizeof *descs) return nullptr;
  for (const recent_group &one : latest->places) {
    if (!one.plan_ || one.which_.size() != count) continue;
    if (one.again(on, descs, where, accesses)) return &one;
    accesses = {};  // some may be alike
  }
  return nullptr;
}

bool recent_group::again(const context &on, const sg_gemm_desc *descs, binding &where, group_accesses &accesses) const {
  const std::size_t count = which_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const recent_product &product = distinct_[which_[i]];
    if (!product.has_form_of(on, descs[i])) return false;
    if (i == 0) {
      where.others.resize(count - 1);
      accesses.reserve(count);
    }
    const auto now = product.again(on, descs[i]);
    if (!now) return false;
    (i == 0 ? where.first : where.others[i - 1]) = now->where;
    accesses.add(now->accesses, static_cast<std::size_t>(product.operand_count()));
  }
  return true;
}

void recent_group::add(const context &on, const sg_gemm_desc &desc, const checked_gemm &product) {
  if (!is_known_) return;
  recent_product one;
  is_known_ = which_.size() < most_products && one.remember(on, desc, product);
  if (!is_known_) return;
  auto same = std::find_if(distinct_.begin(), distinct_.end(), [&](const recent_product &x) { return x.is_same(one); });
  if (same == distinct_.end()) {
    is_known_ = distinct_.size() < most_distinct;
    if (!is_known_) return;
    same = distinct_.insert(same, std::move(one));
  }
  which_.push_back(static_cast<std::uint8_t>(same - distinct_.begin()));
}

void recent_group::remember(recent_group &&made, const std::shared_ptr<const program> &plan) noexcept {
  if (!made.is_known_ || plan->schedule->commands.size() > most_products) return;
  table *const latest = thread_owned<table>::get();
  if (!latest) return;
  recent_group &place = latest->places[latest->turn++ % std::size(latest->places)];
  place = std::move(made);
  place.plan_ = plan;
}

}  // namespace sg
