// SPDX-License-Identifier: Apache-2.0
#include "run/generations.hpp"

namespace sg {

std::uint32_t generations::count_in() noexcept {
  if (++counted_ > most_jobs) open_next();
  in_flight_[present_ % places].fetch_add(1, std::memory_order_relaxed);
  return present_;
}

bool generations::open_next() noexcept {
  if (in_flight_[(present_ + 1) % places].load(std::memory_order_acquire) != 0) return false;
  ++present_;
  counted_ = 0;
  return true;
}

std::uint32_t generations::oldest() noexcept {
  while (oldest_ != present_ && in_flight_[oldest_ % places].load() == 0) ++oldest_;
  return oldest_;
}

bool generations::ended_up_to(std::uint32_t generation) noexcept {
  if (static_cast<std::int32_t>(oldest() - generation) > 0) return true;
  return oldest_ == generation && in_flight_[generation % places].load() == 0;
}

}  // namespace sg
