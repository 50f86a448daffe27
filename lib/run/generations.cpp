// SPDX-License-Identifier: Apache-2.0
#include "run/generations.hpp"

namespace sg {

std::uint32_t generations::count_in() noexcept {
  if (++counted_ > most_jobs) open_next();
  ++begun_[present_ % places];
  return present_;
}

bool generations::open_next() noexcept {
  if (!none_in_flight(present_ + 1)) return false;
  ++present_;
  counted_ = 0;
  return true;
}

std::uint32_t generations::oldest() noexcept {
  while (oldest_ != present_ && none_in_flight(oldest_)) ++oldest_;
  return oldest_;
}

bool generations::ended_up_to(std::uint32_t generation) noexcept {
  if (static_cast<std::int32_t>(oldest() - generation) > 0) return true;
  return oldest_ == generation && none_in_flight(generation);
}

}  // namespace sg
