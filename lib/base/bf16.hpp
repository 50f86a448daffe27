// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace sg {

// f32 to bf16, to nearest, ties to even; a NaN stays one, of the same sign. `from`: floats of any alignment.
void round_to_bf16(std::uint16_t *to, const void *from, std::size_t count) noexcept;

}  // namespace sg
