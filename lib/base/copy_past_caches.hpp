// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace sg {

// memcpy for memory that is not read soon: what is written does not push anything out of the caches, and its lines are
// not fetched from memory before they are written. The ranges do not overlap.
void copy_past_caches(void *to, const void *from, std::size_t bytes) noexcept;

}  // namespace sg
