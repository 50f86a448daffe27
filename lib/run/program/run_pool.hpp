// SPDX-License-Identifier: Apache-2.0
// Completed runs, reused by the next run of their program. They belong to the context, so programs are immutable.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "run/program/program.hpp"

namespace sg {

class program_run;

struct return_to_pool {
  void operator()(program_run *completed) const noexcept;
};
// A run in use. Its owner is a job, whose context owns the pool: the pool outlives it.
using pooled_run = std::unique_ptr<program_run, return_to_pool>;

// Any thread, without a lock. A pooled run owns a reference to its program; no program refers to a run.
class run_pool {
 public:
  run_pool() noexcept = default;
  ~run_pool();
  run_pool(const run_pool &) = delete;
  run_pool &operator=(const run_pool &) = delete;

  // A fresh run of the program: a pooled one if there is one. Throws std::bad_alloc.
  pooled_run acquire(const std::shared_ptr<const program> &of);

 private:
  friend return_to_pool;
  // Set-associative, by program; at most `sets * ways` runs are kept.
  static constexpr std::size_t sets = 32, ways = 2;
  struct alignas(64) set {  // aligned: threads run different programs
    std::array<std::atomic<program_run *>, ways> slots{};
  };

  set &set_of(const program *of) noexcept;
  void release(program_run *completed) noexcept;

  std::array<set, sets> kept_{};  // nullptr: free; a thread that examines a run has taken it out
};

}  // namespace sg
