// SPDX-License-Identifier: Apache-2.0
#include "run/dispatch/step_combiner.hpp"

#include <exception>

#include "base/futex.hpp"

namespace sg {

namespace {
// The first caller works for others this long, and to the end of a step. On an H200 a flood of GEMMs in 48 parts each,
// whose launches take longer than the GEMMs, kept its first submitter for ever.
constexpr std::int64_t patience_ns = 1'000'000;
}  // namespace

step_combiner::~step_combiner() {
  if (!thread_.joinable()) return;
  handover_.store(closing, std::memory_order_release);
  futex_wake_all(handover_);
  thread_.join();
}

void step_combiner::request() noexcept {
  if (requests_.fetch_add(1, std::memory_order_acq_rel) != 0) return;
  std::uint64_t served = 1;
  std::int64_t since_ns = 0;
  for (;;) {
    step_();
    if (requests_.compare_exchange_strong(served, 0, std::memory_order_acq_rel)) return;
    const std::int64_t now_ns = monotonic_ns();
    if (since_ns == 0) {
      since_ns = now_ns;
    } else if (now_ns - since_ns > patience_ns) {
      if (hand_over()) return;
      since_ns = now_ns;
    }
  }
}

bool step_combiner::hand_over() noexcept {
  if (!thread_.joinable()) {
    try {
      thread_ = thread("sg-engine", [this] { relieve(); });
    } catch (const std::exception &) {  // no thread, or no memory for one
      return false;
    }
  }
  keeper_.add_ref();
  handover_.store(taken_over, std::memory_order_release);
  futex_wake_all(handover_);
  return true;
}

void step_combiner::relieve() noexcept {
  for (;;) {
    futex_wait(handover_, none, deadline(-1));
    std::uint32_t now = taken_over;
    if (!handover_.compare_exchange_strong(now, none, std::memory_order_acquire)) {
      if (now == closing) return;
      continue;
    }
    std::uint64_t served = requests_.load(std::memory_order_acquire);
    do {
      step_();
    } while (!requests_.compare_exchange_strong(served, 0, std::memory_order_acq_rel));
    keeper_.drop_ref();
  }
}

}  // namespace sg
