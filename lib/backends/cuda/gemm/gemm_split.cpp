// SPDX-License-Identifier: Apache-2.0
// GEMMs of f32 on tensor cores: each operand is split into a high and a low part, and three of the four products of
// parts are computed. Tensor cores truncate their sums, the more the larger these are:
//
//   high * high             in the requested format, in pieces of the depth whose sums are added in f32 with rounding
//   high * low + low * high in bf16, as one GEMM of twice the depth: its sums are so much smaller that neither the
//                           truncation nor bf16's error in a low part matters
#include <algorithm>

#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/libraries/blas.hpp"

namespace sg::cuda {
namespace {

// Depth that is split at once, and the minimum if memory is short. On an H200, 8192^3 in 3xtf32 and bf16x3: 8.95 and
// 6.8 ms with 1024, 8.5 and 6.2 with 2048, 8.5 and 6.15 with 4096, each with twice the memory (no record is kept).
constexpr std::int64_t most_split = 2048, least_split = 512;
// Depth of a piece of high * high. On an H200, the largest error of 8192^3, 4096^3 and 2048^3 in relation to cuBLAS's
// in f32, of random signs and of positive numbers (no record is kept): 3xtf32 in pieces of 512 0.43, 0.46, 0.88 and
// 0.57, 0.95, 1.27, of 1024 0.74, 0.93, 1.61 and 1.16, 1.94, 2.65, and a tenth faster; bf16x3, whose instructions add
// twice the depth at once and whose parts are shorter, of 512 and 1024 1.07 to 2.5 and 0.2 to 0.9, a sixth faster with
// 1024.
constexpr std::int64_t piece_of(short_format format) noexcept { return format == short_format::tf32 ? 512 : 1024; }

// Alignment in elements for cuBLAS's fast tensor core kernels: those for other sizes take four times as long.
constexpr std::int64_t aligned_to = 8;

// Where three short GEMMs and the splitting are faster than one in f32.
bool pays(const call_stream &in, const sg_backend_gemm &g) noexcept {
  const bool is_aligned = g.m % aligned_to == 0 && g.n % aligned_to == 0 && g.ldc % 4 == 0 &&
                          reinterpret_cast<std::uintptr_t>(g.c) % 16 == 0;
  return in.owner().facts().major >= 8 && is_aligned && g.batch == 1 && !has_pointers(g) && is_large_enough_to_split(g);
}

std::int64_t round_up(std::int64_t x, std::int64_t to) noexcept { return (x + to - 1) / to * to; }

// Equal parts of `total`, none longer than `most`.
std::int64_t even_part(std::int64_t total, std::int64_t most) noexcept {
  const std::int64_t count = (total + most - 1) / most;
  return std::min(total, round_up((total + count - 1) / count, 16));
}

// Memory layout of the parts of one operand's piece. Columns are aligned for tensor cores' loads.
class split_operand {
 public:
  split_operand(const void *from, std::int64_t ld, std::int64_t lines, bool depth_is_rows, bool low_first,
                short_format format) noexcept
      : from_(static_cast<const float *>(from)),
        ld_(ld),
        lines_(lines),
        rows_(depth_is_rows),
        low_first_(low_first),
        format_(format) {}

  std::int64_t bytes(std::int64_t depth) const noexcept { return high_bytes(depth) + corrections_bytes(depth); }
  void set_memory(char *memory, std::int64_t depth) noexcept {
    high_ = memory;
    corrections_ = memory + high_bytes(depth);
  }

  cudaError_t split(std::int64_t first, std::int64_t depth, cudaStream_t in) const noexcept {
    return launch_split({.src = from_ + (rows_ ? first : first * ld_),
                         .ld = ld_,
                         .rows = rows_ ? depth : lines_,
                         .cols = rows_ ? lines_ : depth,
                         .depth_is_rows = rows_,
                         .low_first = low_first_,
                         .format = format_,
                         .high = high_,
                         .corrections = corrections_,
                         .high_ld = high_ld(depth),
                         .corrections_ld = corrections_ld(depth)},
                        in);
  }

  // From `first` on in a piece of that depth.
  const void *high(std::int64_t first, std::int64_t depth) const noexcept {
    return high_ + (rows_ ? first : first * high_ld(depth)) * size();
  }
  const void *corrections() const noexcept { return corrections_; }
  std::int64_t high_ld(std::int64_t depth) const noexcept { return aligned(rows_ ? depth : lines_); }
  std::int64_t corrections_ld(std::int64_t depth) const noexcept { return aligned(rows_ ? 2 * depth : lines_); }

 private:
  static std::int64_t aligned(std::int64_t elements) noexcept { return round_up(elements, aligned_to); }
  std::int64_t size() const noexcept { return format_ == short_format::tf32 ? 4 : 2; }
  std::int64_t high_bytes(std::int64_t depth) const noexcept {
    return round_up(high_ld(depth) * (rows_ ? lines_ : depth) * size(), 256);
  }
  std::int64_t corrections_bytes(std::int64_t depth) const noexcept {
    return round_up(corrections_ld(depth) * (rows_ ? lines_ : 2 * depth) * 2, 256);
  }

  const float *from_;
  std::int64_t ld_, lines_;
  bool rows_, low_first_;
  short_format format_;
  char *high_ = nullptr, *corrections_ = nullptr;
};

// Allocates pieces of `depth`; if memory is short, shallower ones.
sg_status take_memory(gemm_resources &in, const split_operand &a, const split_operand &b, std::int64_t &depth,
                      void *&memory) noexcept {
  for (;; depth = even_part(depth, depth / 2)) {
    const sg_status status = in.acquire(static_cast<std::uint64_t>(a.bytes(depth) + b.bytes(depth)), &memory);
    if (status != SG_STATUS_OUT_OF_MEMORY || depth < 2 * least_split) return status;
  }
}

}  // namespace

bool is_large_enough_to_split(const sg_backend_gemm &g) noexcept {
  return g.k >= 128 && double(g.m) * double(g.n) >= 1024.0 * 1024.0;
}

sg_status run_split(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  if (has_pointers(what) && pays(in, item_of(what, 0))) {
    for (std::int64_t i = 0; i < what.batch; ++i)
      if (const sg_status status = run_split(in, item_of(what, i))) return status;
    return SG_STATUS_OK;
  }
  if (!pays(in, what)) return run_blas(in, what);
  cublasHandle_t handle = nullptr;
  if (const sg_status status = in.blas_handle(what.compute_units, handle)) return status;
  const bool is_tf32 = what.compute == SG_COMPUTE_3XTF32;
  const short_format format = is_tf32 ? short_format::tf32 : short_format::bf16;
  constexpr blas_types of_bf16{CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  const blas_types of_high = is_tf32 ? blas_types{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32} : of_bf16;
  split_operand a(what.a, what.lda, what.m, what.op_a != SG_TRANSPOSE_N, false, format);
  split_operand b(what.b, what.ldb, what.n, what.op_b == SG_TRANSPOSE_N, true, format);
  const std::int64_t whole = what.k / 16 * 16;  // the unaligned remainder is a piece of its own
  std::int64_t deepest = even_part(whole, most_split);
  void *memory = nullptr;
  if (const sg_status status = take_memory(in, a, b, deepest, memory)) return status;
  a.set_memory(static_cast<char *>(memory), deepest);
  b.set_memory(static_cast<char *>(memory) + a.bytes(deepest), deepest);

  const auto alpha = static_cast<float>(what.alpha.re), beta = static_cast<float>(what.beta.re), one = 1.0f;
  sg_backend_gemm g = what;
  const auto add = [&](std::int64_t depth, const blas_types &types, bool begins) {
    g.k = depth;
    return blas_failure(call_blas(handle, g, types, {&alpha, begins ? &beta : &one}));
  };
  sg_status status = SG_STATUS_OK;
  for (std::int64_t first = 0, depth = 0; first < what.k && status == SG_STATUS_OK; first += depth) {
    depth = first < whole ? std::min(deepest, whole - first) : what.k - whole;
    status = in.owner().check(a.split(first, depth, in.native()), "splitting");
    if (status == SG_STATUS_OK) status = in.owner().check(b.split(first, depth, in.native()), "splitting");
    if (status != SG_STATUS_OK) break;
    g.a = a.corrections(), g.lda = a.corrections_ld(depth);
    g.b = b.corrections(), g.ldb = b.corrections_ld(depth);
    status = add(2 * depth, of_bf16, first == 0);
    g.lda = a.high_ld(depth), g.ldb = b.high_ld(depth);
    const std::int64_t piece = even_part(depth, piece_of(format));
    for (std::int64_t at = 0; at < depth && status == SG_STATUS_OK; at += piece) {
      g.a = a.high(at, depth), g.b = b.high(at, depth);
      status = add(std::min(piece, depth - at), of_high, false);
    }
  }
  in.release(memory);
  return status;
}

}  // namespace sg::cuda
