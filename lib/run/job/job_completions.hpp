// SPDX-License-Identifier: Apache-2.0
// Waits for several jobs, perhaps of several contexts.
#pragma once

#include <cstdint>

#include "base/futex.hpp"

namespace sg {

// Event count of completed jobs of the process: read count(), test the jobs, wait() while the count is unchanged.
class job_completions {
 public:
  job_completions() noexcept;  // completions are counted while one exists
  ~job_completions();
  std::uint32_t count() const noexcept;
  void wait(std::uint32_t seen, const deadline &until) const noexcept;
  static void announce() noexcept;
};

}  // namespace sg
