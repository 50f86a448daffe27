// SPDX-License-Identifier: Apache-2.0
// GEMMs of panels in bf16 and i8 with the processor's instructions for products of small matrices: AMX's on tiles of 16
// rows of 64 bytes (amx_tiles.cpp), or Arm's on two rows of 8 bytes (mmla_tiles.cpp). Both are compiled for such
// processors only. A panel consists of strips of some rows of op(A), or columns of op(B); a strip of blocks, which have
// row_bytes of each row or column. Blocks beyond the end of A, B or the depth are padded with zeros.
#pragma once

#include <cstdint>

namespace sg::cpu {

struct gemm_args;

namespace mma {

#ifdef __aarch64__
constexpr std::int64_t strip = 8;      // rows of op(A), or columns of op(B)
constexpr std::int64_t row_bytes = 8;  // of one row or column in a block
#else
constexpr std::int64_t strip = 32;
constexpr std::int64_t row_bytes = 64;
#endif

// Elements of a strip, row or column, within op(X): `across` counts rows of op(A) or columns of op(B), `along` counts
// k.
struct source {
  const void *x;
  std::int64_t ld;
  bool along_is_contiguous;
  std::int64_t first_across, first_along, across, along;
  std::int64_t element_bytes;  // 2 or 1
};

// Into a panel of round_up(across, strip) * round_up(along, row_bytes / element_bytes) elements.
void pack_a(void *panel, const source &from) noexcept;
void pack_b(void *panel, const source &from) noexcept;

// C = A * B + beta * C, with beta 0 or 1, on panels; m, n and k are multiples of a strip and of a block's depth.
void multiply_bf16(const gemm_args &p) noexcept;  // C of f32
void multiply_i8(const gemm_args &p) noexcept;    // C of i32, modulo 2^32

}  // namespace mma
}  // namespace sg::cpu
