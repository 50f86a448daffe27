// SPDX-License-Identifier: Apache-2.0
// Memory spaces of allocations made by this library: saves a query of the device, which takes longer than the rest of a
// submission.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "base/memory_space.hpp"
#include "run/memory/process_ranges.hpp"

namespace sg {

// Any thread.
class memory_map {
 public:
  // A cached answer; valid until a range is removed.
  class memo {
   public:
    memory_space space() const noexcept { return space_; }

   private:
    friend memory_map;
    std::uint64_t state_ = 0;  // 0: none
    std::uintptr_t lo_ = 0, hi_ = 0;
    memory_space space_ = SG_MEMORY_PAGEABLE;
  };

  // `on`: the device of the context.
  explicit memory_map(const sg_backend_ops *on = nullptr) noexcept : backend_(on) {}
  // `stage`: addresses without memory, of a pipeline's stage. Throws std::bad_alloc.
  void add(const void *memory, std::uint64_t bytes, memory_space space, bool stage = false);
  void remove(const void *memory) noexcept;  // before it is freed
  // Whether `found` is valid for all of the bytes. Inline: called for each operand of a submission.
  bool holds(const memo &found, const void *memory, std::uint64_t bytes) const noexcept {
    const auto first = reinterpret_cast<std::uintptr_t>(memory);
    return found.state_ == state_.load(std::memory_order_acquire) && first >= found.lo_ && first < found.hi_ &&
           bytes <= found.hi_ - first;
  }
  // The calling thread's memo of the range; nullptr if it is not inside an added range.
  const memo *find(const void *memory, std::uint64_t bytes) const noexcept;

 private:
  inline static std::atomic<std::uint64_t> states_{0};  // a new number for each map, and for each removal
  const sg_backend_ops *const backend_;
  mutable std::mutex lock_;
  std::map<std::uintptr_t, memo> ranges_;  // by lo; their state_ is unused
  std::atomic<std::uint64_t> state_{++states_};
};

}  // namespace sg
