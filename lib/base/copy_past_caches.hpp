// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace sg {

// memcpy with streaming stores, for memory that is not read soon: it evicts nothing from the caches and does not read
// the destination. The ranges must not overlap.
void copy_past_caches(void *to, const void *from, std::size_t bytes) noexcept;

}  // namespace sg
