// SPDX-License-Identifier: Apache-2.0
// The table of a backend's operations: one entry for each kind of command.
#pragma once

#include <streamgemm/backend.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "backends/common/command.hpp"
#include "backends/common/supports.hpp"

namespace sg {
inline namespace common {

// `Run`: a function that computes the command, enqueues it, or makes its task.
template <class Run>
struct operation_entry {
  sg_backend_command_kind kind;
  std::size_t size;  // of its command struct
  bool (*supports)(const sg_backend_command &what) noexcept;
  Run *run;
};

// One more than the last kind.
constexpr std::size_t command_kinds() noexcept {
  std::size_t last = SG_BACKEND_MARKER;
#define SG_KIND(NAME, KIND, TITLE) last = std::max<std::size_t>(last, SG_BACKEND_##KIND);
  SG_BACKEND_COMMANDS(SG_KIND)
#undef SG_KIND
  return last + 1;
}

template <class Run>
class operation_table {
 public:
  template <std::size_t count>
  constexpr explicit operation_table(const operation_entry<Run> (&entries)[count]) {
    for (const operation_entry<Run> &each : entries) by_kind_[each.kind] = each;
  }

  // NULL: the backend has no such command.
  constexpr const operation_entry<Run> *find(sg_backend_command_kind kind) const noexcept {
    const auto index = static_cast<std::size_t>(kind);
    return index < by_kind_.size() && by_kind_[index].run != nullptr ? &by_kind_[index] : nullptr;
  }

  constexpr std::size_t largest_command() const noexcept {  // in bytes
    std::size_t largest = 0;
    for (const operation_entry<Run> &each : by_kind_) largest = std::max(largest, each.size);
    return largest;
  }

 private:
  std::array<operation_entry<Run>, command_kinds()> by_kind_{};
};

}  // namespace common
}  // namespace sg
