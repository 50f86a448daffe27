// SPDX-License-Identifier: Apache-2.0
// A copy between pageable memory and device memory, in chunks through pinned slots that host workers fill or empty: the
// device's own copy of pageable memory is several times slower.
#pragma once

#include <cstdint>

#include "model/device_model.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

// The parameters, both of `bytes` contiguous bytes.
inline constexpr std::int32_t staged_copy_from = 0, staged_copy_to = 1;
schedule staged_copy(std::int64_t bytes, bool to_device, const device_model &model);

}  // namespace sg
