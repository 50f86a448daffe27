// SPDX-License-Identifier: Apache-2.0
// Failures of which the program has not been told, so that what reads the memory that was to be written fails too
// instead of passing for good. A failure that others follow from is one cause: who is told of one of them is told of
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

namespace sg {

class job;

// Any thread. Of very many only the latest are remembered.
class untold_failures {
 public:
  // One use of a job's record.
  struct use {
    const job *who = nullptr;
    std::uint32_t generation = 0;
    std::uint16_t incarnation = 0;
    bool operator==(const use &) const = default;
  };

  bool none() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
  static std::uint64_t new_cause() noexcept { return ++causes_made_; }
  // Before the job is seen to have ended. Without memory for it the failure is the job's alone.
  void add(const use &failed, std::uint64_t cause, const char *message) noexcept;
  // 0: it has not failed, or the program knows.
  std::uint64_t cause_of(const use &ended) const noexcept;
  // The first failure's own message; "" when the program knows, or nothing was to be written.
  std::string text_of(std::uint64_t cause) const;  // Throws std::bad_alloc.
  void told(std::uint64_t cause) noexcept;

 private:
  static constexpr std::size_t most = 4096;
  struct hash {
    std::size_t operator()(const use &u) const noexcept {
      return (reinterpret_cast<std::uintptr_t>(u.who) >> 6) * 0x9E3779B97F4A7C15ull ^ u.generation << 16 ^
             u.incarnation;
    }
  };
  struct origin {
    std::string text;
    std::size_t uses = 0;
  };
  void drop(const use &one) noexcept;

  inline static std::atomic<std::uint64_t> causes_made_{0};
  mutable std::mutex lock_;
  std::unordered_map<use, std::uint64_t, hash> cause_;
  std::unordered_map<std::uint64_t, origin> origins_;
  std::deque<use> in_order_;  // of cause_'s keys, the oldest first
  std::atomic<std::size_t> count_{0};
};

}  // namespace sg
