// SPDX-License-Identifier: Apache-2.0
// The device memory of a run, on a device that may have less of it than the plan supposed: others use it too.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "run/program/program.hpp"

namespace sg {

class arena_pool;
class job;

// Used by the engine's one thread at a time, which owns it.
class oom_replan {
 public:
  // Takes the device memory of a job's schedule into its operands. When the device refuses and `replans` is set, the
  // job is planned again for what is free, with smaller tiles, and once more for less, as long as there is a plan; the
  // job then has that plan. Throws sg::error(SG_STATUS_OUT_OF_MEMORY), which then says what was wanted and what is
  // free, std::bad_alloc.
  void acquire_memory(job &ready, arena_pool &from, bool replans);

 private:
  using program_ref = std::shared_ptr<const program>;
  static constexpr std::size_t most_variants = 64;

  program_ref low_memory_variant_of(const program_ref &planned) const noexcept;  // nullptr: none is known
  void remember(const program_ref &planned, const program_ref &variant) noexcept;

  // The plan that ran last in place of another. It owns the variants and watches the plans.
  std::map<std::weak_ptr<const program>, program_ref, std::owner_less<>> variants_;
};

}  // namespace sg
