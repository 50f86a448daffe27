// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/process_end.hpp"

#include <cstdlib>

namespace sg::cuda {
namespace {

std::atomic<bool> begun{false};

// Never destroyed: threads outlive the handler.
std::recursive_mutex &lock() noexcept {
  alignas(std::recursive_mutex) static unsigned char place[sizeof(std::recursive_mutex)];
  static std::recursive_mutex *const only = new (place) std::recursive_mutex;
  return *only;
}

void begin() {
  begun.store(true);
  const std::lock_guard wait_for_who_frees(lock());
}

}  // namespace

void process_end::watch() noexcept {
  static const int installed = std::atexit(begin);
  static_cast<void>(installed);
}

void process_end::watch_again() noexcept {
  static std::atomic<int> left{8};  // handlers are never removed
  if (left.fetch_sub(1, std::memory_order_relaxed) > 0) std::atexit(begin);
}

bool process_end::has_begun() noexcept { return begun.load(std::memory_order_acquire); }

process_end::freeing::freeing() noexcept {
  lock().lock();
  allowed_ = !has_begun();
}

process_end::freeing::~freeing() { lock().unlock(); }

}  // namespace sg::cuda
