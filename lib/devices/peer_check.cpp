// SPDX-License-Identifier: Apache-2.0
#include "devices/peer_check.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "base/futex.hpp"

namespace sg {

namespace {

constexpr std::int64_t checked_bytes = 1 << 20, timed_bytes = 32 << 20;
constexpr int timed_copies = 3;

// Memory and a stream of a device.
class checked_device {
 public:
  checked_device(const device &on, std::int64_t bytes) : on_(on), memory_(on.mem_alloc(std::uint64_t(bytes))) {
    try {
      stream_ = on.stream_create(0);
    } catch (...) {
      on.ops().mem_free(on.handle(), memory_);
      throw;
    }
  }
  ~checked_device() {
    on_.ops().stream_destroy(stream_);
    on_.ops().mem_free(on_.handle(), memory_);
  }
  checked_device(const checked_device &) = delete;
  checked_device &operator=(const checked_device &) = delete;

  void *memory() const noexcept { return memory_; }
  void put(const void *from) { copy(memory_, {SG_MEMORY_DEVICE, 0}, from, {SG_MEMORY_PAGEABLE, 0}, checked_bytes); }
  void get(void *to) { copy(to, {SG_MEMORY_PAGEABLE, 0}, memory_, {SG_MEMORY_DEVICE, 0}, checked_bytes); }
  // Seconds on the device's clock, or on the host's if the device has none.
  double pull(const checked_device &other, std::int64_t bytes) {
    return copy(memory_, {SG_MEMORY_DEVICE, 0}, other.memory_, {SG_MEMORY_PEER, other.on_.index()}, bytes);
  }

 private:
  struct outcome {
    std::atomic<std::uint32_t> over{0};  // a futex
    sg_status status = SG_STATUS_OK;
    double seconds = 0;
  };

  double copy(void *to, sg_backend_space to_space, const void *from, sg_backend_space from_space, std::int64_t bytes) {
    sg_backend_copy move{};
    move.header = {sizeof move, SG_BACKEND_COPY};
    move.dst = to, move.dst_space = to_space, move.dst_pitch = bytes;
    move.src = from, move.src_space = from_space, move.src_pitch = bytes;
    move.width = bytes, move.height = 1;
    outcome end;
    const auto done = [](void *user, const sg_backend_result *result) {
      outcome &found = *static_cast<outcome *>(user);
      found.status = result->status;
      found.seconds = double(result->end_ns - result->start_ns) * 1e-9;
      found.over.store(1, std::memory_order_release);
      futex_wake_all(found.over);
    };
    const auto begin = std::chrono::steady_clock::now();
    on_.check(on_.enqueue(stream_, move.header, {done, &end}), "a copy between devices");
    while (end.over.load(std::memory_order_acquire) == 0) {
      if (on_.ops().poll) on_.ops().poll(on_.handle());
      futex_wait(end.over, 0, deadline(1'000'000));
    }
    on_.check(end.status, "a copy between devices");
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    return end.seconds > 0 ? end.seconds : waited.count();
  }

  const device &on_;
  void *const memory_;
  sg_backend_stream *stream_ = nullptr;
};

}  // namespace

arrival check_copies(const device &from, const device &to, std::string &reason) noexcept {
  try {
    checked_device source(from, checked_bytes), target(to, checked_bytes);
    std::vector<std::uint32_t> pattern(checked_bytes / sizeof(std::uint32_t)), other(pattern.size(), 0), back = other;
    for (std::uint32_t i = 0; i < pattern.size(); ++i) pattern[i] = i * 2654435761u + 1;
    source.put(pattern.data());
    source.get(back.data());
    const bool stores = back == pattern;
    target.put(other.data());
    target.pull(source, checked_bytes);
    target.get(back.data());
    if (!stores || back == pattern) return arrival::right;
    reason = back == other ? "copies from " + from.name() + " to " + to.name() + " report success and write nothing"
                           : "copies from " + from.name() + " to " + to.name() + " bring wrong data";
    return arrival::wrong;
  } catch (const std::exception &why) {
    reason = why.what();
  }
  return arrival::unknown;
}

// The difference of two sizes, so that the fixed cost of a copy cancels out.
double rate_of_copies(const device &from, const device &to) noexcept try {
  const checked_device source(from, timed_bytes);
  checked_device target(to, timed_bytes);
  const auto best = [&](std::int64_t bytes) {
    double seconds = HUGE_VAL;
    for (int i = 0; i < timed_copies; ++i) seconds = std::min(seconds, target.pull(source, bytes));
    return seconds;
  };
  const double all = best(timed_bytes), half = best(timed_bytes / 2);
  const double whole = double(timed_bytes) / all;
  // Half the time is fixed cost at most: otherwise something else took the link.
  return all > half ? std::min(double(timed_bytes / 2) / (all - half), 2 * whole) : whole;
} catch (const std::exception &) {
  return 0;
}

}  // namespace sg
