// SPDX-License-Identifier: Apache-2.0
#include "shared_call.hpp"

#include <bit>

#include "backends/cpu/threads/clock.hpp"
#include "backends/cpu/threads/futex.hpp"

namespace sg::cpu {
namespace {

constexpr std::uint32_t sleeps = 1u << 31;
constexpr std::uint64_t most_commands = 0xffff;

constexpr std::uint64_t next_of(std::uint64_t claims) noexcept { return claims >> 16 & 0xffff; }
constexpr std::uint64_t count_of(std::uint64_t claims) noexcept { return claims & 0xffff; }
constexpr std::uint32_t bit_of(std::uint32_t slot) noexcept { return 1u << slot; }

}  // namespace

shared_calls::call *shared_calls::open(const operation &what, const sg_backend_command *const *commands,
                                       std::int32_t count, bool timed) noexcept {
  if (count < 2 || static_cast<std::uint64_t>(count) > most_commands) return nullptr;
  std::uint32_t used = used_.load(std::memory_order_relaxed), slot;
  do {
    slot = static_cast<std::uint32_t>(std::countr_one(used));
    if (slot >= most_calls) return nullptr;
  } while (!used_.compare_exchange_weak(used, used | bit_of(slot), std::memory_order_acquire));
  call &own = calls_[slot];
  own.what_ = &what;
  own.commands_ = commands;
  own.timed_ = timed;
  own.failure_.store(UINT64_MAX, std::memory_order_relaxed);
  own.busy_ns_.store(0, std::memory_order_relaxed);
  own.left_.store(static_cast<std::uint32_t>(count), std::memory_order_relaxed);
  const std::uint64_t calls_before = own.claims_.load(std::memory_order_relaxed) >> 32;
  own.claims_.store((calls_before + 1) << 32 | static_cast<std::uint64_t>(count), std::memory_order_release);
  in_a_row_.store(now_ns() - latest_end_ns_.load(std::memory_order_relaxed) < poll_ns, std::memory_order_relaxed);
  open_.fetch_or(bit_of(slot), std::memory_order_seq_cst);
  return &own;
}

bool shared_calls::run_one_of(std::uint32_t slot, workspace &space) noexcept {
  call &of = calls_[slot];
  std::uint64_t claims = of.claims_.load(std::memory_order_acquire);
  do {
    if (next_of(claims) == count_of(claims)) return false;
  } while (!of.claims_.compare_exchange_weak(claims, claims + (1u << 16), std::memory_order_acq_rel,
                                             std::memory_order_acquire));
  // From here on the call cannot complete before this command has completed.
  const std::uint64_t index = next_of(claims);
  if (index + 1 == count_of(claims)) open_.fetch_and(~bit_of(slot), std::memory_order_seq_cst);
  const std::int64_t start_ns = of.timed_ ? now_ns() : 0;
  const sg_status status = of.what_->run(*of.commands_[index], space);
  if (of.timed_) of.busy_ns_.fetch_add(now_ns() - start_ns, std::memory_order_relaxed);
  if (status != SG_STATUS_OK) {
    const std::uint64_t own = index << 32 | static_cast<std::uint32_t>(status);
    std::uint64_t first = of.failure_.load(std::memory_order_relaxed);
    while (own < first && !of.failure_.compare_exchange_weak(first, own, std::memory_order_relaxed)) {
    }
  }
  // Once the last command has completed another call may use the slot; its caller then has a spurious wake-up.
  if (of.left_.fetch_sub(1, std::memory_order_acq_rel) == (sleeps | 1)) futex_wake_all(of.left_);
  return true;
}

bool shared_calls::run_one(workspace &space) noexcept {
  for (std::uint32_t open = open_.load(std::memory_order_relaxed); open != 0; open &= open - 1)
    if (run_one_of(static_cast<std::uint32_t>(std::countr_zero(open)), space)) return true;
  return false;
}

sg_status shared_calls::finish(call &own, workspace &space, std::int64_t *out_busy_ns) noexcept {
  const auto slot = static_cast<std::uint32_t>(&own - calls_.data());
  while (run_one_of(slot, space)) {
  }
  // A fast worker may have claimed the last command before the slot was announced.
  if ((open_.load(std::memory_order_relaxed) & bit_of(slot)) != 0)
    open_.fetch_and(~bit_of(slot), std::memory_order_seq_cst);
  const auto has_left = [&] { return own.left_.load(std::memory_order_acquire) != 0; };
  if (has_left())
    for (const std::int64_t until_ns = now_ns() + last_poll_ns; has_left() && now_ns() < until_ns;) relax();
  for (std::uint32_t left = own.left_.load(std::memory_order_acquire); (left & ~sleeps) != 0;
       left = own.left_.load(std::memory_order_acquire)) {
    if ((left & sleeps) == 0) {
      if (!own.left_.compare_exchange_weak(left, left | sleeps, std::memory_order_acquire)) continue;
      left |= sleeps;
    }
    futex_wait(own.left_, left);
  }
  const std::uint64_t failure = own.failure_.load(std::memory_order_relaxed);
  if (out_busy_ns != nullptr) *out_busy_ns = own.busy_ns_.load(std::memory_order_relaxed);
  latest_end_ns_.store(now_ns(), std::memory_order_relaxed);
  used_.fetch_and(~bit_of(slot), std::memory_order_release);
  return failure == UINT64_MAX ? SG_STATUS_OK : static_cast<sg_status>(static_cast<std::uint32_t>(failure));
}

}  // namespace sg::cpu
