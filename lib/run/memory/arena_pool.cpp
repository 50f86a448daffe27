// SPDX-License-Identifier: Apache-2.0
#include "run/memory/arena_pool.hpp"

#include <algorithm>
#include <new>

#include "base/checked.hpp"
#include "base/log.hpp"
#include "trace/recorder.hpp"

namespace sg {

namespace {

// A buffer is freed at its release if it is larger, or if so many bytes are kept.
constexpr std::uint64_t largest_kept_buffer = 16 << 20, most_kept_buffers = 128 << 20;

}  // namespace

arena_pool::~arena_pool() {
  for (const block &b : blocks_) free_block(b.start);
  free_kept_buffers();
}

void arena_pool::free_kept_buffers() noexcept {
  for (const auto &[bytes, all] : kept_buffers_)
    for (char *each : all) free_block(each);
  kept_buffers_.clear();
  kept_buffer_bytes_ = 0;
}

char *arena_pool::acquire_buffer(std::uint64_t bytes, std::uint32_t &epoch) {
  epoch = buffer_epoch_.load();
  {
    const std::lock_guard lock(lock_);
    if (const auto kept = kept_buffers_.find(bytes); kept != kept_buffers_.end()) {
      char *const start = kept->second.back();
      kept->second.pop_back();
      if (kept->second.empty()) kept_buffers_.erase(kept);
      kept_buffer_bytes_ -= bytes;
      return start;
    }
  }
  return static_cast<char *>(device_.mem_alloc(bytes));
}

void arena_pool::release_buffer(char *start, std::uint64_t bytes, std::uint32_t epoch) noexcept {
  if (epoch != buffer_epoch_.load()) return;
  if (!device_.unified() && bytes <= largest_kept_buffer) {
    const std::lock_guard lock(lock_);
    if (kept_buffer_bytes_ + bytes <= most_kept_buffers) try {
        kept_buffers_[bytes].push_back(start);
        kept_buffer_bytes_ += bytes;
        return;
      } catch (const std::bad_alloc &) {
      }
  }
  free_block(start);
}

void arena_pool::free_block(char *start) const noexcept {
  if (kind_ == memory::device)
    device_.ops().mem_free(device_.handle(), start);
  else
    device_.ops().host_free(device_.handle(), start);
}

void arena_pool::free_kept() noexcept {
  std::erase_if(blocks_, [this](const block &b) {
    if (b.taken) return false;
    free_block(b.start);
    held_ -= b.bytes;
    return true;
  });
  free_kept_buffers();
  record_size();
}

void arena_pool::record_size() const noexcept {
  if (!trace::recording_is_on()) return;
  trace::event e(trace::event_kind::memory, context_, 0);
  e.body.start_ns = e.body.end_ns = monotonic_ns();
  e.body.value = static_cast<std::uint64_t>(held());
  e.body.lane = kind_ == memory::device ? 0 : 1;
  trace::record(e);
}

arena_pool::block *arena_pool::best_kept(std::int64_t bytes) noexcept {
  block *best = nullptr;
  for (block &b : blocks_)
    if (!b.taken && b.bytes >= bytes && b.bytes / 2 <= bytes && (!best || b.bytes < best->bytes)) best = &b;
  return best;
}

bool arena_pool::keeps(std::int64_t bytes) noexcept {
  if (bytes == 0) return true;
  const std::lock_guard lock(lock_);
  return best_kept(round_up(bytes, 4096)) != nullptr;
}

char *arena_pool::acquire(std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  bytes = round_up(bytes, 4096);
  const std::lock_guard lock(lock_);
  block *best = best_kept(bytes);
  if (!best) {
    if (held() + bytes > limit_) free_kept();
    if (held() + bytes > limit_)
      throw error(SG_STATUS_OUT_OF_MEMORY, "%lld bytes of %s memory are needed; %lld of %lld are in use",
                  static_cast<long long>(bytes), kind_ == memory::device ? "device" : "pinned",
                  static_cast<long long>(held()), static_cast<long long>(limit_));
    const auto allocate = [&] {
      const auto size = static_cast<std::uint64_t>(bytes);
      return static_cast<char *>(kind_ == memory::device ? device_.mem_alloc(size)
                                                         : device_.host_alloc(size, device_.model().numa_node));
    };
    blocks_.reserve(blocks_.size() + 1);
    char *start;
    try {
      start = allocate();
    } catch (const error &) {
      if (held_ == in_use_ && kept_buffer_bytes_ == 0) throw;
      if (logs(log_level::info, log_area::memory))
        log_message(log_level::info, log_area::memory,
                    "%s has no %lld bytes of %s memory: %lld that were kept are freed first", device_.name().c_str(),
                    static_cast<long long>(bytes), kind_ == memory::device ? "device" : "pinned",
                    static_cast<long long>(held() - in_use_) + static_cast<long long>(kept_buffer_bytes()));
      free_kept();
      start = allocate();
    }
    best = &blocks_.emplace_back(block{start, bytes, false});
    held_ += bytes;
    record_size();
    if (logs(log_level::debug, log_area::memory))
      log_message(log_level::debug, log_area::memory, "%lld bytes of %s memory allocated on %s, %lld in all",
                  static_cast<long long>(bytes), kind_ == memory::device ? "device" : "pinned", device_.name().c_str(),
                  static_cast<long long>(held()));
  }
  best->taken = true;
  in_use_ += best->bytes;
  return best->start;
}

void arena_pool::release(char *start) noexcept {
  if (!start) return;
  const std::lock_guard lock(lock_);
  for (block &b : blocks_) {
    if (b.start != start) continue;
    b.taken = false;
    in_use_ -= b.bytes;
  }
}

void arena_pool::abandon(char *start) noexcept {
  if (!start) return;
  const std::lock_guard lock(lock_);
  std::erase_if(blocks_, [&](const block &b) {
    if (b.start != start) return false;
    in_use_ -= b.bytes;
    return true;
  });
}

bool arena_pool::idle() noexcept {
  const std::lock_guard lock(lock_);
  return in_use_ == 0;
}

void arena_pool::trim() noexcept {
  const std::lock_guard lock(lock_);
  free_kept();
}

}  // namespace sg
