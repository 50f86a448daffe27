// SPDX-License-Identifier: Apache-2.0
#include "run/order/access.hpp"

namespace sg {

std::optional<std::uintptr_t> first_unwritten(const footprint &wanted, std::span<const access> accesses) noexcept {
  std::size_t next = 0;  // neighbours are often written by successive accesses
  const auto end_of_write = [&](std::uintptr_t at) {
    for (std::size_t i = 0; i < accesses.size(); ++i, next = next + 1 < accesses.size() ? next + 1 : 0) {
      const access &a = accesses[next];
      if (!a.writes || !a.exact) continue;
      if (const std::uintptr_t end = run_end(a.bytes, at); end != at) return end;
    }
    return at;
  };
  for (std::int64_t run = 0; run < wanted.runs(); ++run) {
    std::uintptr_t at = wanted.lo + static_cast<std::uintptr_t>(run * wanted.pitch);
    for (const std::uintptr_t end = at + static_cast<std::uintptr_t>(wanted.run); at < end;) {
      const std::uintptr_t written = end_of_write(at);
      if (written == at) return at;
      at = written;
    }
  }
  return std::nullopt;
}

}  // namespace sg
