// SPDX-License-Identifier: Apache-2.0
// The memory space of an address: its kind, and for device memory the device.
#pragma once

#include <streamgemm/types.h>

#include <cstdint>

#include "base/device_index.hpp"

namespace sg {

class memory_space {
 public:
  static constexpr std::uint16_t unknown_peer = UINT16_MAX;

  // A kind without a device index: SG_MEMORY_DEVICE is the first device's, SG_MEMORY_PEER an unspecified peer's.
  constexpr memory_space(sg_memory_kind kind = SG_MEMORY_DEVICE) noexcept
      : kind_(static_cast<std::uint16_t>(kind)), device_(kind == SG_MEMORY_PEER ? unknown_peer : 0) {}
  static constexpr memory_space of_device(device_index device) noexcept {
    return {std::uint16_t{SG_MEMORY_DEVICE}, static_cast<std::uint16_t>(device)};
  }
  // Pinned memory in which a device's workers stage.
  static constexpr memory_space staging_of(device_index device) noexcept {
    return {std::uint16_t{SG_MEMORY_PINNED}, static_cast<std::uint16_t>(device)};
  }
  // Memory of a device outside the machine, by its index in the backend.
  static constexpr memory_space of_peer(std::uint16_t index) noexcept { return {std::uint16_t{SG_MEMORY_PEER}, index}; }

  // Memory that the context cannot use: device memory of another context; or it begins in a buffer and ends beyond it.
  static constexpr memory_space foreign() noexcept { return {foreign_kind, 0}; }
  static constexpr memory_space beyond() noexcept { return {beyond_kind, 0}; }
  constexpr bool is_usable() const noexcept { return kind_ < foreign_kind; }

  constexpr sg_memory_kind kind() const noexcept { return static_cast<sg_memory_kind>(kind_); }
  constexpr device_index device() const noexcept { return device_index(device_); }  // of device, staging
  constexpr std::uint16_t peer() const noexcept { return device_; }                 // of SG_MEMORY_PEER
  // Accessible by the device's copy engines, not passed to its kernels.
  constexpr bool is_copied_directly() const noexcept { return kind() == SG_MEMORY_PINNED || kind() == SG_MEMORY_PEER; }
  constexpr std::uint32_t bits() const noexcept { return std::uint32_t{kind_} << 16 | device_; }

  constexpr bool operator==(const memory_space &) const noexcept = default;
  constexpr bool operator==(sg_memory_kind kind) const noexcept { return kind_ == static_cast<std::uint16_t>(kind); }

 private:
  static constexpr std::uint16_t foreign_kind = 100, beyond_kind = 101;
  constexpr memory_space(std::uint16_t kind, std::uint16_t device) noexcept : kind_(kind), device_(device) {}

  std::uint16_t kind_, device_;
};
static_assert(sizeof(memory_space) == 4);

}  // namespace sg
