// SPDX-License-Identifier: Apache-2.0
// Completed runs, each for the next run of its plan. They belong to the context, so a plan has no mutable state.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "run/program/compiled_plan.hpp"

namespace sg {

class schedule_run;

struct return_to_pool {
  void operator()(schedule_run *completed) const noexcept;
};
// A run in use. Its owner is a job, whose context owns the pool: the pool outlives it.
using pooled_run = std::unique_ptr<schedule_run, return_to_pool>;

// Any thread, without a lock. A pooled run owns a reference to its plan; no plan refers to a run.
class run_pool {
 public:
  run_pool() noexcept = default;
  ~run_pool();
  run_pool(const run_pool &) = delete;
  run_pool &operator=(const run_pool &) = delete;

  // A run of the plan that has not begun: a completed one, if one is here. Throws std::bad_alloc.
  pooled_run acquire(const std::shared_ptr<const compiled_plan> &plan);

 private:
  friend return_to_pool;
  // A set is searched for a plan; runs of at most `sets * ways` plans are kept.
  static constexpr std::size_t sets = 32, ways = 2;
  using set = std::array<std::atomic<schedule_run *>, ways>;

  set &set_of(const compiled_plan *plan) noexcept;
  void release(schedule_run *completed) noexcept;

  std::array<set, sets> kept_{};  // nullptr: free; a thread that examines a run has taken it out
};

}  // namespace sg
