// SPDX-License-Identifier: Apache-2.0
// Index of a device in a machine (model/machine_model.hpp), and of a context's devices.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sg {

enum class device_index : std::uint8_t {};
inline constexpr device_index first_device{0};
inline constexpr std::size_t most_devices = 256;

constexpr std::size_t number_of(device_index device) noexcept { return static_cast<std::size_t>(device); }

}  // namespace sg
