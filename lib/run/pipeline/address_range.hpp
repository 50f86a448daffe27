// SPDX-License-Identifier: Apache-2.0
// Addresses without memory, which stand for the addresses of every batch.
#pragma once

#include <cstdint>

#include "run/memory/memory_map.hpp"

namespace sg {

class address_range {
 public:
  // Known to `known` as memory of the device. Throws sg::error(SG_STATUS_OUT_OF_MEMORY).
  address_range(memory_map &known, std::int64_t bytes, device_index device);
  ~address_range();
  address_range(const address_range &) = delete;
  address_range &operator=(const address_range &) = delete;

  // The memory is another device's from now on. Throws std::bad_alloc.
  void move_to(device_index device);

  char *begin() const noexcept { return begin_; }
  std::int64_t size() const noexcept { return bytes_; }

 private:
  memory_map &known_;
  const std::int64_t bytes_;
  char *begin_ = nullptr;
};

}  // namespace sg
