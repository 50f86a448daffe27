// SPDX-License-Identifier: Apache-2.0
// A recorded submission with other addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "run/objects/submission.hpp"

namespace sg {

// Addresses from `from` on, `bytes` of them, become those from `to` on.
struct address_move {
  const char *from = nullptr;
  std::int64_t bytes = 0;
  char *to = nullptr;
};

// Disjoint moves. Other addresses stay.
class address_moves {
 public:
  void add(const char *from, std::int64_t bytes, char *to);
  // The submission with its operands and accesses moved.
  submission moved(const submission &recorded) const;

 private:
  const address_move *move_of(const char *address) const noexcept;
  char *moved(char *address) const noexcept;

  std::vector<address_move> moves_;  // few
};

}  // namespace sg
