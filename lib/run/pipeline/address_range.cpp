// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline/address_range.hpp"

#include <sys/mman.h>

#include "base/error.hpp"

namespace sg {

address_range::address_range(memory_map &known, std::int64_t bytes, device_index device)
    : known_(known), bytes_(bytes) {
  void *const reserved =
      ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    throw error(SG_STATUS_OUT_OF_MEMORY, "%lld bytes of addresses cannot be reserved", static_cast<long long>(bytes));
  begin_ = static_cast<char *>(reserved);
  try {
    known_.add(begin_, static_cast<std::uint64_t>(bytes), memory_space::of_device(device), true);
  } catch (...) {
    ::munmap(begin_, static_cast<std::size_t>(bytes));
    throw;
  }
}

void address_range::move_to(device_index device) {
  known_.remove(begin_);
  known_.add(begin_, static_cast<std::uint64_t>(bytes_), memory_space::of_device(device), true);
}

address_range::~address_range() {
  known_.remove(begin_);
  ::munmap(begin_, static_cast<std::size_t>(bytes_));
}

}  // namespace sg
