// SPDX-License-Identifier: Apache-2.0
// Device memory of a run, on a device that may have less of it than planned: other processes use it too.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "run/program/program.hpp"

namespace sg {

class job;
class job_home;

// Owned by the engine; used by one thread at a time.
class oom_replan {
 public:
  // Acquires the memory of a job's schedule on each of its devices and stores it in its operands; `shared`: device
  // memory that it has already. If a device refuses and `replans` is set, the job is planned again for the free memory,
  // with smaller tiles, and again for less, as long as there is a plan; the job then has that plan. Throws
  // sg::error(SG_STATUS_OUT_OF_MEMORY), with the requested and the free amount, or std::bad_alloc.
  void acquire_memory(job &ready, char *shared, bool replans);
  // Releases what the job's operands have. `abandons`: commands may still use it, so that no other job gets it.
  static void release(job &of, bool abandons = false) noexcept;

 private:
  using program_ref = std::shared_ptr<const program>;
  static constexpr std::size_t most_variants = 64;

  static void acquire_all(job &ready, char *shared, device_index &refusing, std::int64_t &refused);
  static void acquire_staging(job &ready);
  static program_ref planned_again(job_home &home, const program &planned, device_index refusing, std::int64_t budget);
  program_ref low_memory_variant_of(const program_ref &planned) const noexcept;  // nullptr: none is known
  void remember(const program_ref &planned, const program_ref &variant) noexcept;

  // The plan that last replaced another. Owns the variants; refers weakly to the plans.
  std::map<std::weak_ptr<const program>, program_ref, std::owner_less<>> variants_;
};

}  // namespace sg
