// SPDX-License-Identifier: Apache-2.0
// A product by tiles: panels of A and B are packed (turned, converted), multiplied by a kernel, and each tile's sums
// are scaled and rounded into C at once. It serves what no kernel takes directly: other types, other scalars, sizes and
// leading dimensions beyond a library's integers.
#pragma once

#include "kernel.hpp"

namespace sg::cpu {

// `in`, `out`: the types of the product. The kernel multiplies panels of its own type: `in`, or f32 for f16, bf16, i8.
sg_status run_tiles(const product &p, sg_dtype in, sg_dtype out, const kernel &panels, workspace &space) noexcept;

}  // namespace sg::cpu
