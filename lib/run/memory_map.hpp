// SPDX-License-Identifier: Apache-2.0
// Memory whose kind the library knows because it came from here, so that the device need not be asked, which takes
// longer than all else of a submission.
#pragma once

#include <streamgemm/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace sg {

// Any thread.
class memory_map {
 public:
  void add(const void *memory, std::uint64_t bytes, sg_memory_kind kind);  // Throws std::bad_alloc.
  void remove(const void *memory) noexcept;                                // before it is freed
  // False when the bytes are not all in memory that was added. In place: every submission asks for each operand.
  bool find(const void *memory, std::uint64_t bytes, sg_memory_kind &kind) const noexcept {
    const auto first = reinterpret_cast<std::uintptr_t>(memory);
    const std::uint64_t state = state_.load(std::memory_order_acquire);
    for (const memo &each : memos_)
      if (each.state == state && each.where.holds(first, bytes)) {
        kind = each.where.kind;
        return true;
      }
    return look_up(first, bytes, kind);
  }

 private:
  struct range {
    std::uintptr_t lo, hi;
    sg_memory_kind kind;
    bool holds(std::uintptr_t first, std::uint64_t bytes) const noexcept {
      return first >= lo && first < hi && bytes <= hi - first;
    }
  };
  // What a thread found latest, while nothing has been removed since.
  struct memo {
    std::uint64_t state;  // 0: none
    range where;
  };
  bool look_up(std::uintptr_t first, std::uint64_t bytes, sg_memory_kind &kind) const noexcept;

  static inline thread_local constinit memo memos_[4]{};
  inline static std::atomic<std::uint64_t> states_{0};  // a new number for each map, and for each removal from one
  mutable std::mutex lock_;
  std::map<std::uintptr_t, range> ranges_;  // by lo
  std::atomic<std::uint64_t> state_{++states_};
};

}  // namespace sg
