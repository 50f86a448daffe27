// SPDX-License-Identifier: Apache-2.0
// A product by tiles: panels of A and B are packed (turned, converted), multiplied by a kernel, and each tile's sums
// are scaled and rounded into C at once. It serves what no kernel takes directly: other types, other scalars, sizes and
// leading dimensions beyond a library's integers.
#pragma once

#include "kernel.hpp"

namespace sg::cpu {

// The most that a tile has of each dimension.
struct tiling {
  std::int64_t kept = 512;  // of m and n, while a worker has memory to pack each panel once and keep it for later tiles
  // Of products too deep for that, whose tiles pack their own. Packing so costs f16, by way of f32, a fifth of f32's
  // rate at 4096^3.
  std::int64_t m = 1024, n = 1024;
  std::int64_t k = 512;  // at most 1024, up to which f32 sums of products of i8 are whole and exact: 1024 * 2^14 = 2^24
};

// `in`, `out`: the types of the product. The kernel multiplies panels of its own type: `in`, or f32 for f16, bf16, i8,
// or f32 or bf16 for f8.
sg_status run_tiles(const gemm_args &p, sg_dtype in, sg_dtype out, const kernel &panels, const tiling &tiles,
                    workspace &space) noexcept;

}  // namespace sg::cpu
