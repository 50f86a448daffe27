// SPDX-License-Identifier: Apache-2.0
// Device memory of runs that follow each other on the device: a run behind all lanes of an earlier one uses its arena
// again, although that one has not completed. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "run/program/inflight_command.hpp"

namespace sg {

class shared_arenas {
 public:
  // `most`: runs at a time.
  explicit shared_arenas(std::size_t most) { all_.reserve(most); }

  // All commands of the run with this arena are enqueued, in these lanes. nullptr: it has none.
  void offer(char *arena, std::int64_t bytes, lane_bits lanes) noexcept;
  // An arena of at least `bytes` of a run whose lanes are all among `behind`; nullptr: there is none, or 0 bytes are
  // wanted.
  char *take(std::int64_t bytes, lane_bits behind) noexcept;
  // A run with the arena has completed. False: no other run uses it, it is the caller's to free.
  bool release(const char *arena) noexcept;

 private:
  struct shared_arena {
    char *start;
    std::int64_t bytes;
    lane_bits lanes;     // of the run that used it last
    std::int32_t users;  // runs that have not completed
    bool is_offered;     // false: that run is not enqueued as a whole
  };
  std::vector<shared_arena> all_;
};

}  // namespace sg
