// SPDX-License-Identifier: Apache-2.0
// An unbounded queue of commands from one producer at a time to one consumer at a time. Commands are stored in blocks;
// an empty block returns to the producer, so a queue of constant length allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include "command.hpp"

namespace sg::cpu {

class command_queue {
 public:
  command_queue() = default;
  command_queue(const command_queue &) = delete;
  command_queue &operator=(const command_queue &) = delete;
  ~command_queue() {
    while (head_ != nullptr) {
      block *next = head_ == tail_ ? nullptr : head_->next;
      delete head_;
      head_ = next;
    }
    delete spare_.load(std::memory_order_relaxed);
  }

  // Allocates the first block; false: out of memory. Call before any other use.
  bool open() noexcept {
    head_ = tail_ = new (std::nothrow) block;
    return head_ != nullptr;
  }

  // Producer: the slot of the next command; NULL: out of memory. Nothing is queued before commit().
  command *reserve() noexcept {
    if (tail_used_ == block_size) {
      block *fresh = spare_.exchange(nullptr, std::memory_order_acquire);
      if (fresh == nullptr) fresh = new (std::nothrow) block;
      if (fresh == nullptr) return nullptr;
      tail_->next = fresh;
      tail_ = fresh;
      tail_used_ = 0;
    }
    return &tail_->slots[tail_used_];
  }

  void commit() noexcept {
    ++tail_used_;
    committed_.store(committed_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
  }

  // Number of commands ever queued.
  std::uint64_t committed() const noexcept { return committed_.load(std::memory_order_relaxed); }

  // Whether the queue is empty. Any thread; exact for the consumer.
  bool empty() const noexcept {
    return committed_.load(std::memory_order_seq_cst) == taken_.load(std::memory_order_relaxed);
  }

  // Consumer: the oldest command; the queue is not empty. Valid until pop().
  command &front() noexcept {
    if (head_used_ == block_size) {
      block *emptied = head_;
      head_ = head_->next;
      head_used_ = 0;
      delete spare_.exchange(emptied, std::memory_order_acq_rel);
    }
    return head_->slots[head_used_];
  }

  void pop() noexcept {
    ++head_used_;
    taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t block_size = 64;
  struct block {
    block *next;  // written before a command of the next block is committed
    command slots[block_size];
  };

  // Producer's and consumer's members are in separate cache lines.
  alignas(64) block *tail_ = nullptr;
  std::uint32_t tail_used_ = 0;
  std::atomic<std::uint64_t> committed_{0};
  alignas(64) block *head_ = nullptr;
  std::uint32_t head_used_ = 0;
  std::atomic<std::uint64_t> taken_{0};
  alignas(64) std::atomic<block *> spare_{nullptr};
};

}  // namespace sg::cpu
