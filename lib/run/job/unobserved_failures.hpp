// SPDX-License-Identifier: Apache-2.0
// Failures that the application has not observed; they poison later reads of the memory that the failed jobs would have
// written. A failure and its consequences have the same causes: observing one of them observes its causes.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "run/job/failure_causes.hpp"

namespace sg {

class job;

// Any thread. Beyond a limit only the latest failures are kept.
class unobserved_failures {
 public:
  // One incarnation of a job's record.
  struct use {
    const job *record = nullptr;
    std::uint32_t epoch = 0;
    std::uint16_t incarnation = 0;
    bool operator==(const use &) const = default;
  };

  bool none() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
  static std::uint64_t new_cause() noexcept { return ++causes_made_; }
  // Called before the completion is visible. Out of memory: the failure is recorded in the job only.
  void add(const use &failed, const failure_causes &causes, const char *message) noexcept;
  // Whether the job has failed, and the application has not observed all causes of that.
  bool has(const use &completed) const noexcept;
  void add_causes_of(const use &completed, failure_causes &to) const noexcept;  // those that are unobserved
  // Message of the first failure; "" if it is observed, or the job writes no memory.
  std::string text_of(std::uint64_t cause) const;  // Throws std::bad_alloc.
  void observed(std::uint64_t cause) noexcept;

 private:
  static constexpr std::size_t most = 4096;
  struct hash {
    std::size_t operator()(const use &u) const noexcept {
      return (reinterpret_cast<std::uintptr_t>(u.record) >> 6) * 0x9E3779B97F4A7C15ull ^ u.epoch << 16 ^ u.incarnation;
    }
  };
  struct origin {
    std::string text;
    std::size_t uses = 0;
  };
  using cause_list = std::vector<std::uint64_t>;
  void release(std::uint64_t cause) noexcept;  // of one use
  void drop(const use &one) noexcept;

  inline static std::atomic<std::uint64_t> causes_made_{0};
  mutable std::mutex lock_;
  std::unordered_map<use, cause_list, hash> causes_;
  std::unordered_map<std::uint64_t, origin> origins_;
  std::deque<use> in_order_;  // keys of causes_, oldest first
  std::atomic<std::size_t> count_{0};
};

}  // namespace sg
