// SPDX-License-Identifier: Apache-2.0
// Memory that a job accesses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "run/order/footprint.hpp"

namespace sg {

// Memory that a job reads or writes.
struct access {
  footprint bytes;
  bool writes = false;
  bool reads = true;  // a written operand that is also read (beta != 0)
  bool exact = true;  // otherwise some of the bytes may be untouched
};

// The first byte of `wanted` that none of the accesses writes; those that may leave some of their bytes do not count.
std::optional<std::uintptr_t> first_unwritten(const footprint &wanted, std::span<const access> accesses) noexcept;

}  // namespace sg
