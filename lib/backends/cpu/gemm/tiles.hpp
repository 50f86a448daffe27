// SPDX-License-Identifier: Apache-2.0
// A GEMM by tiles: panels of A and B are packed (transposed, converted), multiplied by a kernel, and each tile's sums
// are scaled and rounded into C at once. For GEMMs without a direct kernel: other types, other scalars, sizes and
// leading dimensions beyond a library's integers.
#pragma once

#include "kernel.hpp"

namespace sg::cpu {

// Maximum dimensions of a tile.
struct tiling {
  std::int64_t kept = 512;  // m and n, if a worker has memory to pack each panel once and keep it for later tiles
  // For GEMMs too deep for that, whose tiles each pack their own panels. That costs f16, by way of f32, a fifth of
  // f32's rate at 4096^3.
  std::int64_t m = 1024, n = 1024;
  std::int64_t k = 512;  // at most 1024, up to which f32 sums of products of i8 are exact: 1024 * 2^14 = 2^24
};

// `in`, `out`: the types of the GEMM. The kernel multiplies panels of its own type: `in`, or f32 for f16, bf16, i8, or
// f32 or bf16 for f8.
sg_status run_tiles(const gemm_args &p, sg_dtype in, sg_dtype out, const kernel &panels, const tiling &tiles,
                    workspace &space) noexcept;

}  // namespace sg::cpu
