// SPDX-License-Identifier: Apache-2.0
#include "run/event.hpp"

#include "run/stream.hpp"

namespace sg {

void event::record(stream &in) {
  ref<job> marker = owner_->new_job();
  submission order;
  order.on = &in;
  owner_->submit(marker, order, nullptr, 0);
  const std::lock_guard lock(lock_);
  recorded_ = std::move(marker);
}

void event::hold_back(stream &later) const {
  const ref<job> before = recorded();
  if (!before) return;
  ref<job> marker = owner_->new_job();
  submission order;
  order.on = &later;
  order.behind = before.get();
  owner_->submit(marker, order, nullptr, 0);
}

ref<job> event::happened_already() const {
  ref<job> marker = owner_->new_job();
  owner_->submit(marker, submission(), nullptr, 0);
  return marker;
}

ref<job> event::recorded() const noexcept {
  const std::lock_guard lock(lock_);
  return recorded_;
}

}  // namespace sg
