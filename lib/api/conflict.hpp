// SPDX-License-Identifier: Apache-2.0
// Finds operands that overlap where they must not, among many.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "run/order/footprint.hpp"

namespace sg {

// What one of several owners, numbered from 0, reads or writes.
struct owned_bytes {
  footprint bytes;
  std::size_t owner = 0;
  bool writes = false;
};

struct conflict {
  owned_bytes first, second;
};

// The owner of bytes that several read.
inline constexpr std::size_t several_owners = static_cast<std::size_t>(-1);

// Two that belong to different owners and overlap, one of which writes. The time is that of sorting, however many read
// the same bytes, unless the ranges of many that are written cross without touching (rows of one large matrix).
std::optional<conflict> find_conflict(std::vector<owned_bytes> all);

}  // namespace sg
