// SPDX-License-Identifier: Apache-2.0
// An event: a marker job in a stream.
#pragma once

#include <mutex>

#include "base/object.hpp"
#include "run/context.hpp"
#include "run/job.hpp"

namespace sg {

class stream;

class event final : public object {
 public:
  explicit event(ref<context> owner) noexcept : object(object_type::event), owner_(std::move(owner)) {}

  context &owner() const noexcept { return *owner_; }
  void record(stream &in);  // Throws std::bad_alloc, sg::error.
  // The marker as last recorded; empty before.
  ref<job> recorded() const noexcept;
  // What is submitted to `later` from now on runs after the event. Throws like record().
  void hold_back(stream &later) const;
  // A marker that depends on nothing: what an event that was never recorded stands for. Throws like record().
  ref<job> happened_already() const;

 private:
  const ref<context> owner_;
  mutable std::mutex lock_;
  ref<job> recorded_;
};

}  // namespace sg
