// SPDX-License-Identifier: Apache-2.0
#include "callers.hpp"

#include <cfenv>
#include <new>

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace sg::cpu {

workspace_pool::~workspace_pool() {
  for (auto &place : kept_) delete place.load(std::memory_order_relaxed);
}

workspace *workspace_pool::acquire() noexcept {
  for (auto &place : kept_)
    if (place.load(std::memory_order_relaxed) != nullptr)
      if (workspace *const kept = place.exchange(nullptr, std::memory_order_acquire)) return kept;
  auto *const fresh = new (std::nothrow) workspace;
  if (fresh != nullptr) fresh->of_caller = true;
  return fresh;
}

void workspace_pool::release(workspace *used) noexcept {
  for (auto &place : kept_) {
    workspace *none = nullptr;
    if (place.load(std::memory_order_relaxed) == nullptr &&
        place.compare_exchange_strong(none, used, std::memory_order_release))
      return;
  }
  delete used;
}

#ifdef __SSE2__
default_arithmetic::default_arithmetic() noexcept : before_(_mm_getcsr()) {
  constexpr std::uint32_t flags = 0x3f, of_new_thread = 0x1f80;
  if ((before_ & ~flags) != of_new_thread) _mm_setcsr(of_new_thread);
}
default_arithmetic::~default_arithmetic() { _mm_setcsr(before_); }
#else
default_arithmetic::default_arithmetic() noexcept : before_(static_cast<std::uint32_t>(std::fegetround())) {
  std::fesetround(FE_TONEAREST);
}
default_arithmetic::~default_arithmetic() { std::fesetround(static_cast<int>(before_)); }
#endif

}  // namespace sg::cpu
