// SPDX-License-Identifier: Apache-2.0
// Finds forbidden overlaps among many operands.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "run/order/footprint.hpp"

namespace sg {

// Bytes that one of several owners, numbered from 0, reads or writes.
struct owned_bytes {
  footprint bytes;
  std::size_t owner = 0;
  bool writes = false;
};

struct conflict {
  owned_bytes first, second;
};

// The owner of bytes with several readers.
inline constexpr std::size_t several_owners = static_cast<std::size_t>(-1);

// Two overlapping entries of different owners, one of which writes. Takes the time of sorting, however many owners read
// the same bytes, except for many written ranges that interleave without touching (rows of one large matrix).
std::optional<conflict> find_conflict(std::vector<owned_bytes> all);

}  // namespace sg
