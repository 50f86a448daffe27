// SPDX-License-Identifier: Apache-2.0
// A stream: the order of what is submitted to it. It has no thread and no queue of its own.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/object.hpp"
#include "run/context.hpp"
#include "run/job.hpp"

namespace sg {

class stream final : public object {
 public:
  stream(ref<context> owner, std::int32_t priority) noexcept
      : object(object_type::stream), owner_(std::move(owner)), priority_(priority) {}

  context &owner() const noexcept { return *owner_; }
  std::int32_t priority() const noexcept { return priority_; }
  std::uint32_t number() const noexcept { return number_; }  // streams take turns by it

  // Orders `next` after the latest submission. The context's submission lock is held.
  void append(job &next);
  // The latest submission; empty when there was none.
  ref<job> latest() const noexcept;

 private:
  const ref<context> owner_;
  const std::int32_t priority_;
  const std::uint32_t number_ = count_++;
  inline static std::atomic<std::uint32_t> count_{0};
  ref<job> latest_;  // guarded by the context's submission lock
};

}  // namespace sg
