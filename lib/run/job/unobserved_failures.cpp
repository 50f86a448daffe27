// SPDX-License-Identifier: Apache-2.0
#include "run/job/unobserved_failures.hpp"

#include <new>

namespace sg {

void unobserved_failures::add(const use &failed, std::uint64_t cause, const char *message) noexcept {
  const std::lock_guard lock(lock_);
  if (in_order_.size() == most) {
    drop(in_order_.front());
    in_order_.pop_front();
  }
  try {
    in_order_.push_back(failed);
    origin &from = origins_[cause];
    if (from.uses++ == 0) from.text = message;
    cause_.emplace(failed, cause);
    count_.store(cause_.size(), std::memory_order_release);
  } catch (const std::bad_alloc &) {
  }
}

std::uint64_t unobserved_failures::cause_of(const use &completed) const noexcept {
  const std::lock_guard lock(lock_);
  const auto found = cause_.find(completed);
  return found == cause_.end() ? 0 : found->second;
}

std::string unobserved_failures::text_of(std::uint64_t cause) const {
  const std::lock_guard lock(lock_);
  const auto found = origins_.find(cause);
  return found == origins_.end() ? std::string() : found->second.text;
}

void unobserved_failures::observed(std::uint64_t cause) noexcept {
  if (none()) return;
  const std::lock_guard lock(lock_);
  if (origins_.erase(cause) == 0) return;
  std::erase_if(in_order_, [&](const use &one) {
    const auto found = cause_.find(one);
    if (found != cause_.end() && found->second != cause) return false;
    if (found != cause_.end()) cause_.erase(found);
    return true;
  });
  count_.store(cause_.size(), std::memory_order_release);
}

void unobserved_failures::drop(const use &one) noexcept {
  const auto found = cause_.find(one);
  if (found == cause_.end()) return;
  const auto from = origins_.find(found->second);
  if (from != origins_.end() && --from->second.uses == 0) origins_.erase(from);
  cause_.erase(found);
}

}  // namespace sg
