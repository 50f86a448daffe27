// SPDX-License-Identifier: Apache-2.0
#include "run/job/unobserved_failures.hpp"

#include <algorithm>
#include <new>

namespace sg {

void unobserved_failures::add(const use &failed, const failure_causes &causes, const char *message) noexcept {
  const std::lock_guard lock(lock_);
  if (in_order_.size() == most) {
    drop(in_order_.front());
    in_order_.pop_front();
  }
  try {
    cause_list list;
    causes.for_each([&](std::uint64_t cause) { list.push_back(cause); });
    in_order_.push_back(failed);
    for (const std::uint64_t cause : list) {
      origin &from = origins_[cause];
      if (from.uses++ == 0) from.text = message;
    }
    causes_.emplace(failed, std::move(list));
    count_.store(causes_.size(), std::memory_order_release);
  } catch (const std::bad_alloc &) {
  }
}

bool unobserved_failures::has(const use &completed) const noexcept {
  const std::lock_guard lock(lock_);
  return causes_.contains(completed);
}

void unobserved_failures::add_causes_of(const use &completed, failure_causes &to) const noexcept {
  const std::lock_guard lock(lock_);
  if (const auto found = causes_.find(completed); found != causes_.end())
    for (const std::uint64_t cause : found->second) to.add(cause);
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
    const auto found = causes_.find(one);
    if (found == causes_.end()) return true;
    std::erase(found->second, cause);
    if (!found->second.empty()) return false;
    causes_.erase(found);
    return true;
  });
  count_.store(causes_.size(), std::memory_order_release);
}

void unobserved_failures::release(std::uint64_t cause) noexcept {
  const auto from = origins_.find(cause);
  if (from != origins_.end() && --from->second.uses == 0) origins_.erase(from);
}

void unobserved_failures::drop(const use &one) noexcept {
  const auto found = causes_.find(one);
  if (found == causes_.end()) return;
  for (const std::uint64_t cause : found->second) release(cause);
  causes_.erase(found);
}

}  // namespace sg
