// SPDX-License-Identifier: Apache-2.0
// The plugin's own kernels beside those of commands. Each function enqueues one and returns the launch's error.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

#include <cstdint>

#include "accesses.hpp"
#include "layers.hpp"

namespace sg::cuda {

// The epilogue of a GEMM whose sums are in C: C = activation(C + bias), item by item.
struct gemm_epilogue {
  void *c;
  const void *bias;  // nullptr: none
  std::int64_t m, n, ldc, batch, stride_c, stride_bias;
  std::int32_t bias_per_row;
  sg_activation activation;
};
inline constexpr int most_parameter_epilogues = 48;
// At most that many, of one type that is its own accumulator.
cudaError_t launch_epilogues(const gemm_epilogue *epilogues, int count, sg_dtype type, cudaStream_t in) noexcept;

// Copies between pinned and device memory by few blocks that access the link directly.
cudaError_t launch_narrow_copy(const sg_backend_copy &what, cudaStream_t in) noexcept;

// Writes pointers to the items from `first` on: to[o * count + first + i] = base o of item i, for o of A, B, C. The
// bases are kernel parameters, at most `most_parameter_items` of them, which is faster than copying the pointers.
inline constexpr int most_parameter_items = 160;
struct item_bases {
  const char *of[3];
};
struct pointer_fill {
  const item_bases *items;  // host memory, read during the call
  int item_count;
  std::int64_t first, count;  // `count`: of all items
  const void **to;            // device memory
};
cudaError_t launch_pointer_fill(const pointer_fill &what, cudaStream_t in) noexcept;

// Any GEMM of i8, with any alignment. Pointer arrays are in device memory.
cudaError_t launch_gemm_i8(const sg_backend_gemm &what, cudaStream_t in) noexcept;

// op(X), of any type of one byte, as lines of `padded_depth` bytes, padded with zeros: dst[l + padded_depth * line].
// depth_is_rows: X is contiguous along the depth already, and lines are its columns.
struct i8_panel {
  const void *src;
  std::int64_t ld, lines, depth, padded_depth;
  bool depth_is_rows;
  void *dst;
};
cudaError_t launch_pack_i8(const i8_panel &what, cudaStream_t in) noexcept;

// A column-major matrix of elements of 2 or 4 bytes as one of dst_rows x dst_cols, not smaller and without gaps, with
// zeros elsewhere. A column of dst is a multiple of 16 bytes, and dst is aligned to 16.
struct padded_matrix {
  const void *src;
  std::int64_t element_bytes, ld, rows, cols;
  void *dst;
  std::int64_t dst_rows, dst_cols;
};
cudaError_t launch_pad(const padded_matrix &what, cudaStream_t in) noexcept;

// `items` matrices of f8, converted to contiguous ones of bf16 or f16. In elements; dst_ld is a multiple of 4, dst
// aligned to 8 bytes.
struct f8_panel {
  const void *src;
  void *dst;
  std::int64_t rows, cols, items, src_ld, src_stride, dst_ld;
};
inline constexpr int most_parameter_panels = 48;
// At most that many, of one type.
cudaError_t launch_widen_f8(const f8_panel *panels, int count, sg_dtype from, sg_dtype to, cudaStream_t in) noexcept;

// A piece of an f32 operand as its high parts, in the format, and for the corrections as two adjacent blocks of bf16
// along the depth: the high parts and the low ones, or the other way round. Infinities and NaNs are in the high parts,
// and zero in both blocks.
enum class short_format { tf32, bf16 };
struct split_panel {
  const float *src;
  std::int64_t ld, rows, cols;  // of the piece, as stored
  bool depth_is_rows;           // the second block is below the first; otherwise after its last column
  bool low_first;
  short_format format;
  void *high;                            // rows x cols
  void *corrections;                     // depth_is_rows: 2 * rows x cols; otherwise rows x 2 * cols
  std::int64_t high_ld, corrections_ld;  // multiples of 4; both aligned to 16 bytes
};
// Elements at once.
inline constexpr std::int64_t split_pack = 4;
inline std::int64_t pack_of(const split_panel &x) noexcept {
  const bool wide = x.rows % split_pack == 0 && is_aligned(access{x.src, split_pack * 4, x.cols, x.ld * 4});  // of f32
  return wide ? split_pack : 1;
}
cudaError_t launch_split(const split_panel &what, cudaStream_t in) noexcept;

}  // namespace sg::cuda
