// SPDX-License-Identifier: Apache-2.0
// Combining executor: the first caller runs steps until no request is pending; other callers return at once. Under a
// continuous flow of requests a thread of its own takes over, so that the first caller's submission returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/object.hpp"
#include "base/thread.hpp"

namespace sg {

class step_combiner {
 public:
  // `step` handles all pending work; one thread at a time. `keeper` owns what it accesses, and is never destroyed on
  // this object's thread.
  step_combiner(std::function<void()> step, object &keeper) : step_(std::move(step)), keeper_(keeper) {}
  ~step_combiner();  // no request follows
  step_combiner(const step_combiner &) = delete;
  step_combiner &operator=(const step_combiner &) = delete;

  // Requests a step that begins after this call, on this thread or another. The caller keeps a reference to the keeper.
  void request() noexcept;
  bool is_working() const noexcept { return requests_.load(std::memory_order_relaxed) != 0; }

 private:
  enum handover : std::uint32_t { none, taken_over, closing };
  bool hand_over() noexcept;  // by the combiner
  void relieve() noexcept;    // by the thread

  const std::function<void()> step_;
  object &keeper_;
  std::atomic<std::uint64_t> requests_{0};     // since the combiner was last idle
  std::atomic<std::uint32_t> handover_{none};  // the state of the thread: a futex
  thread thread_;                              // started when it is first needed
};

}  // namespace sg
