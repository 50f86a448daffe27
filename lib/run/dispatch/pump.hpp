// SPDX-License-Identifier: Apache-2.0
// Whose turn it is to look at what is new: whoever asks first works until nobody has asked again, and the others go on
// at once. Where others ask without end, a thread of this object's own takes over, so that a submission returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/object.hpp"
#include "base/thread.hpp"

namespace sg {

class pump {
 public:
  // `step` looks at everything there is; one thread at a time. `keeper` owns what it touches, and its last reference is
  // never dropped to the end on this object's thread.
  pump(std::function<void()> step, object &keeper) : step_(std::move(step)), keeper_(keeper) {}
  ~pump();  // nobody asks any more
  pump(const pump &) = delete;
  pump &operator=(const pump &) = delete;

  // Something is new: a step begins after this, on this thread or on another. The caller keeps a reference to the
  // keeper.
  void ask() noexcept;
  bool is_working() const noexcept { return requests_.load(std::memory_order_relaxed) != 0; }

 private:
  enum turn : std::uint32_t { none, taken_over, closing };
  bool hand_over() noexcept;  // by who has the turn
  void relieve() noexcept;    // the thread

  const std::function<void()> step_;
  object &keeper_;
  std::atomic<std::uint64_t> requests_{0};  // since there was nothing to do
  std::atomic<std::uint32_t> turn_{none};   // the thread's: a futex
  thread thread_;                           // started when it is first needed
};

}  // namespace sg
