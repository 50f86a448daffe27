// SPDX-License-Identifier: Apache-2.0
// A lock-free list that is closed once.
#pragma once

#include <atomic>
#include <cstdint>

namespace sg {

// Many threads push, one thread closes the list and takes its nodes; before that the list can be marked once. It is
// tagged with the record's incarnation, so that a push for an earlier incarnation fails.
template <class Node>
class closing_list {
 public:
  enum class pushed { no, yes, after_mark };  // no: closed, or another incarnation

  void reopen(std::uint16_t tag) noexcept { word_.store(std::uint64_t{tag} << 48, std::memory_order_release); }
  Node *latest() const noexcept {  // to compare, not to dereference
    return reinterpret_cast<Node *>(word_.load(std::memory_order_acquire) & pointer_mask);
  }
  pushed push(Node *node, std::uint16_t tag) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    do {
      if (word >> 48 != tag || (word & closed)) return pushed::no;
      node->next = reinterpret_cast<Node *>(word & pointer_mask);
    } while (!word_.compare_exchange_weak(
        word, std::uint64_t{tag} << 48 | reinterpret_cast<std::uintptr_t>(node) | (word & marked),
        std::memory_order_acq_rel));
    return word & marked ? pushed::after_mark : pushed::yes;
  }
  Node *mark() noexcept {  // the nodes pushed before, latest first; they stay in the list
    return reinterpret_cast<Node *>(word_.fetch_or(marked, std::memory_order_acq_rel) & pointer_mask);
  }
  bool is_marked() const noexcept { return (word_.load(std::memory_order_acquire) & marked) != 0; }
  Node *close() noexcept {  // latest first
    std::uint64_t word = word_.load(std::memory_order_acquire);
    while (
        !word_.compare_exchange_weak(word, (word >> 48) << 48 | (word & marked) | closed, std::memory_order_acq_rel)) {
    }
    return reinterpret_cast<Node *>(word & pointer_mask);
  }

 private:
  static constexpr std::uint64_t closed = 1, marked = 2, pointer_mask = (1ull << 48) - 8;
  static_assert(alignof(Node) >= 8);
  std::atomic<std::uint64_t> word_{0};
};

}  // namespace sg
