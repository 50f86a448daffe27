// SPDX-License-Identifier: Apache-2.0
// Device memory, and pinned host memory for its copies, for runs of schedules. Blocks are kept after a run: allocating
// one takes longer than many a GEMM.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/device_index.hpp"
#include "devices/device.hpp"

namespace sg {

// Any thread.
class arena_pool {
 public:
  enum class memory { device, pinned };

  // `index`: the device's in the machine. `context`: the number of its context, for traces.
  arena_pool(const device &on, device_index index, memory kind, std::int64_t limit, std::uint64_t context = 0) noexcept
      : device_(on), index_(index), kind_(kind), limit_(limit), context_(context) {}
  ~arena_pool();
  arena_pool(const arena_pool &) = delete;
  arena_pool &operator=(const arena_pool &) = delete;

  const device &on() const noexcept { return device_; }
  device_index index() const noexcept { return index_; }

  // A block of at least `bytes`; nullptr for 0 bytes. Throws sg::error(SG_STATUS_OUT_OF_MEMORY) if neither a kept block
  // nor the device provides one within the limit.
  char *acquire(std::int64_t bytes);
  void release(char *block) noexcept;
  // Not to be used again, nor freed, because commands of the device may still use it. It counts against the limit.
  void abandon(char *block) noexcept;
  // Memory of a caller's buffer, beyond the limit. Small ones are kept after their release for buffers of the same
  // size, unless the device has the host's memory. `epoch` receives the number that release_buffer() needs. Throws
  // sg::error.
  char *acquire_buffer(std::uint64_t bytes, std::uint32_t &epoch);
  void release_buffer(char *start, std::uint64_t bytes, std::uint32_t epoch) noexcept;
  // The buffers that exist are not used again after their release, nor freed: commands that the backend has given up
  // may still use them.
  void retire_buffers() noexcept { buffer_epoch_.fetch_add(1); }

  // Runs that may release memory of the pool when they end. await_runs(): whether there are some; the end of the next
  // one then returns true, once.
  void run_begins() noexcept { runs_.fetch_add(1); }
  bool run_ends() noexcept {
    runs_.fetch_sub(1);
    return awaited_.load() && awaited_.exchange(false);
  }
  bool await_runs() noexcept {
    awaited_.store(true);  // sequentially consistent with run_ends(): one of both sees the other
    return runs_.load() > 0;
  }

  bool keeps(std::int64_t bytes) noexcept;  // acquire(bytes) would not allocate
  bool idle() noexcept;                     // no block is in use
  void trim() noexcept;                     // frees the kept blocks and buffers
  std::int64_t held() const noexcept { return held_.load(std::memory_order_relaxed); }  // bytes, of all blocks
  std::uint64_t kept_buffer_bytes() const noexcept { return kept_buffer_bytes_.load(std::memory_order_relaxed); }

  std::atomic<std::int64_t> buffer_bytes{0};  // of callers' buffers

 private:
  struct block {
    char *start = nullptr;
    std::int64_t bytes = 0;
    bool taken = false;
  };
  block *best_kept(std::int64_t bytes) noexcept;
  void free_kept() noexcept;
  void free_kept_buffers() noexcept;
  void record_size() const noexcept;  // in the trace
  void free_block(char *start) const noexcept;

  const device &device_;
  const device_index index_;
  const memory kind_;
  const std::int64_t limit_;
  const std::uint64_t context_;
  std::atomic<std::int32_t> runs_{0};
  std::atomic<bool> awaited_{false};
  std::atomic<std::int64_t> held_{0};  // bytes, of all blocks; written under the lock
  std::int64_t in_use_ = 0;            // of those in use
  std::vector<block> blocks_;
  std::map<std::uint64_t, std::vector<char *>> kept_buffers_;  // by size
  std::atomic<std::uint64_t> kept_buffer_bytes_{0};            // written under the lock
  std::atomic<std::uint32_t> buffer_epoch_{0};                 // how often buffers were retired
  std::mutex lock_;
};

// A block of a pool, which outlives it.
class pooled_arena {
 public:
  pooled_arena() noexcept = default;
  pooled_arena(arena_pool &from, std::int64_t bytes)
      : from_(&from), block_(from.acquire(bytes)) {}  // Throws sg::error.
  pooled_arena(pooled_arena &&other) noexcept
      : from_(std::exchange(other.from_, nullptr)), block_(std::exchange(other.block_, nullptr)) {}
  pooled_arena &operator=(pooled_arena &&other) noexcept {
    std::swap(from_, other.from_);
    std::swap(block_, other.block_);
    return *this;
  }
  ~pooled_arena() {
    if (block_) from_->release(block_);
  }
  char *get() const noexcept { return block_; }  // nullptr: 0 bytes
  const arena_pool *pool() const noexcept { return from_; }
  void abandon() noexcept { from_->abandon(std::exchange(block_, nullptr)); }

 private:
  arena_pool *from_ = nullptr;
  char *block_ = nullptr;
};

}  // namespace sg
