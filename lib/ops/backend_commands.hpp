// SPDX-License-Identifier: Apache-2.0
// The backend commands of one command of a schedule. Reused: keeps its capacity.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

namespace sg {

// The kind of a backend command, by its type; specialized in the header of the operation.
template <sg_backend_command_kind Kind>
using kind_constant = std::integral_constant<sg_backend_command_kind, Kind>;
template <class Command>
struct backend_kind;
template <>
struct backend_kind<sg_backend_copy> : kind_constant<SG_BACKEND_COPY> {};
template <>
struct backend_kind<sg_backend_gemm> : kind_constant<SG_BACKEND_GEMM> {};
template <>
struct backend_kind<sg_backend_reduce> : kind_constant<SG_BACKEND_REDUCE> {};

// A command with only its header set.
template <class Command>
constexpr Command backend_command() noexcept {
  Command made{};
  made.header = {sizeof(Command), backend_kind<Command>::value};
  return made;
}

// Downcasts a header to its command struct.
template <class Command>
const Command &as_backend(const sg_backend_command &what) noexcept {
  return reinterpret_cast<const Command &>(what);
}

// Pointer arrays of one command; the backend reads them during the call only.
struct pointer_scratch {
  std::vector<void *> a, b, c;
};

class backend_commands {
 public:
  template <class Command>
  void add(const Command &what) {  // Throws std::bad_alloc.
    static_assert(sizeof(Command) <= sizeof(slot) && std::is_trivially_copyable_v<Command>);
    slots_.emplace_back();
    ::new (slots_.back().bytes) Command(what);
  }
  void clear() noexcept { slots_.clear(); }
  std::size_t size() const noexcept { return slots_.size(); }
  sg_backend_command &at(std::size_t index) noexcept {
    return *std::launder(reinterpret_cast<sg_backend_command *>(slots_[index].bytes));
  }

  pointer_scratch pointers;
  std::vector<sg_backend_copy> copies;  // scratch too

 private:
  struct slot {
    alignas(16) std::byte bytes[336];
  };
  std::vector<slot> slots_;
};

}  // namespace sg
