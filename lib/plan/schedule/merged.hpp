// SPDX-License-Identifier: Apache-2.0
// Several schedules as one, in the order in which they were appended: for the simulator, which has no arenas.
#pragma once

#include "plan/schedule/schedule.hpp"

namespace sg {

class merged_schedule {
 public:
  // `follows`: its commands without a wait wait for the last command appended before.
  void append(const schedule &next, bool follows);
  const schedule &whole() const noexcept { return whole_; }

 private:
  schedule whole_;
};

}  // namespace sg
