// SPDX-License-Identifier: Apache-2.0
#include "run/stream.hpp"

namespace sg {

void stream::append(job &next) {
  if (latest_) next.order_after(*latest_, latest_->incarnation(), false);
  latest_ = ref<job>::share(&next);
}

ref<job> stream::latest() const noexcept {
  const std::lock_guard lock(owner_->submission_lock());
  return latest_;
}

}  // namespace sg
