// SPDX-License-Identifier: Apache-2.0
// Batches of blocking calls that idle workers help to compute. The calling thread publishes its commands; it and the
// workers claim them one by one. A call never waits for a worker to join: it only waits for commands that workers have
// begun.
#pragma once

#include <streamgemm/backend.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "backends/cpu/worker/workspace.hpp"
#include "operations.hpp"

namespace sg::cpu {

class shared_calls {
 public:
  // Time that a worker polls for the next call after it has helped, if the latest two calls followed each other within
  // this time. Waking it costs the caller about as much as a short command.
  static constexpr std::int64_t poll_ns = 100'000;
  // Time that the caller polls for the last commands before it sleeps: equal parts complete within this time of each
  // other. A wake-up takes about 10 us: f64 128^3 on two cores 57 us without these polls, 44 us with them.
  static constexpr std::int64_t last_poll_ns = 20'000;

  class call;
  // Publishes `count` >= 2 commands, all of the kind of `what`; they must stay valid until finish(). nullptr: no slot
  // is free, and nothing is published. `timed`: finish() returns the busy time.
  call *open(const operation &what, const sg_backend_command *const *commands, std::int32_t count, bool timed) noexcept;
  // Called once by the calling thread: computes the commands that no worker has begun, waits for the others and
  // releases the call. Returns the status of the first command that failed. `out_busy_ns`: NULL, or the sum of the
  // times of all commands.
  sg_status finish(call &own, workspace &space, std::int64_t *out_busy_ns) noexcept;

  // Whether there is an unclaimed command. Sequentially consistent: a worker that is about to sleep sees the command,
  // or the caller sees the worker asleep.
  bool any() const noexcept { return open_.load(std::memory_order_seq_cst) != 0; }
  // Runs one command of some call; false: none was left.
  bool run_one(workspace &space) noexcept;
  // Whether calls follow each other so closely that polling for the next one pays.
  bool in_a_row() const noexcept { return in_a_row_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t most_calls = 16;  // at a time

 public:
  class alignas(64) call {
    friend class shared_calls;
    // The next unclaimed command and the number of commands, in 16 bits each, below a count of the calls that used this
    // slot: a claim fails if another call has the slot.
    std::atomic<std::uint64_t> claims_{0};
    // Incomplete commands; the upper bit: the caller sleeps. A futex.
    std::atomic<std::uint32_t> left_{0};
    std::atomic<std::uint64_t> failure_{UINT64_MAX};  // index and status of the first command that failed
    std::atomic<std::int64_t> busy_ns_{0};
    // Written while no thread can claim.
    const operation *what_ = nullptr;
    const sg_backend_command *const *commands_ = nullptr;
    bool timed_ = false;
  };

 private:
  bool run_one_of(std::uint32_t slot, workspace &space) noexcept;

  // Slots, a bit each: with unclaimed commands; in use.
  alignas(64) std::atomic<std::uint32_t> open_{0};
  std::atomic<std::uint32_t> used_{0};
  std::atomic<bool> in_a_row_{false};
  std::atomic<std::int64_t> latest_end_ns_{INT64_MIN / 2};
  std::array<call, most_calls> calls_;
};

}  // namespace sg::cpu
