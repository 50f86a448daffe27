// SPDX-License-Identifier: Apache-2.0
// Programs by problem: a shape that was planned once is looked up from then on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "plan/gemm/problem.hpp"
#include "plan/model/device_model.hpp"
#include "run/program/program.hpp"

namespace sg {

// Any thread.
class program_cache {
 public:
  // Throws what make_plan throws, and SG_STATUS_INTERNAL when `check` is set and the schedule has a hazard.
  std::shared_ptr<const sg::program> get(const problem *problems, std::size_t count, const plan_request &request,
                                         const device_model &model, bool check);
  // No other cache of the process has it.
  std::uint64_t number() const noexcept { return number_; }
  // The same by the shared table only: it touches nothing of the thread's own, whose first use may need memory.
  std::shared_ptr<const sg::program> look_up(const problem *problems, std::size_t count, const plan_request &request,
                                             const device_model &model, bool check);

 private:
  static constexpr std::size_t most_entries = 4096;

  // What a thread asked for latest, found without the lock.
  struct memo {
    std::uint64_t cache = 0;  // number_ of the cache that it is of
    problem shape;
    plan_request request;
    std::shared_ptr<const sg::program> program;
  };
  struct memos;
  static memo *memo_of(const problem &shape) noexcept;  // nullptr when the thread has none (thread_owned)

  inline static std::atomic<std::uint64_t> count_{0};
  const std::uint64_t number_ = ++count_;

  std::mutex lock_;
  std::unordered_multimap<std::uint64_t, std::shared_ptr<const sg::program>> entries_;
};

}  // namespace sg
