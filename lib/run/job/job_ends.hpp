// SPDX-License-Identifier: Apache-2.0
// Waits for several jobs, perhaps of several contexts.
#pragma once

#include <cstdint>

#include "base/futex.hpp"

namespace sg {

// Sleeps until some job of the process has ended. `seen` is the count before the caller looked at its jobs.
class job_ends {
 public:
  job_ends() noexcept;  // begins to watch
  ~job_ends();
  std::uint32_t count() const noexcept;
  void wait(std::uint32_t seen, const deadline &until) const noexcept;
  static void announce() noexcept;
};

}  // namespace sg
