// SPDX-License-Identifier: Apache-2.0
// GEMMs.
#pragma once

#include <cstddef>

#include "backends/common/command.hpp"
#include "backends/common/types.hpp"
#include "backends/cuda/gemm/gemm_resources.hpp"
#include "backends/cuda/kernels/kernels.hpp"

namespace sg::cuda {

// GEMMs of one batch.
class gemm_list {
 public:
  gemm_list(const sg_backend_command *const *commands, std::size_t count) noexcept
      : commands_(commands), count_(count) {}
  std::size_t size() const noexcept { return count_; }
  const sg_backend_gemm &operator[](std::size_t index) const noexcept { return as<sg_backend_gemm>(*commands_[index]); }
  const sg_backend_command *const *commands() const noexcept { return commands_; }

 private:
  const sg_backend_command *const *commands_;
  std::size_t count_;
};

// Enqueues a GEMM with its epilogue.
sg_status run_gemm(gemm_resources &in, const sg_backend_gemm &what) noexcept;
// Enqueues all GEMMs, in as few calls as their shapes allow.
sg_status run_group(gemm_resources &in, const gemm_list &items, sg_status *statuses) noexcept;

// Epilogues. If C is its own accumulator, they may follow in a separate kernel.
bool has_epilogue(const sg_backend_gemm &what) noexcept;
bool has_separate_epilogue(const sg_backend_gemm &what) noexcept;
const void *bias_of_item(const sg_backend_gemm &what, std::int64_t item) noexcept;
// Enqueues the separate epilogues of the GEMMs, in few launches; `statuses`: of the GEMMs, which have one type of C, or
// nullptr. Pointer arrays are in host memory.
sg_status add_epilogues(gemm_resources &in, const gemm_list &gemms, const sg_status *statuses) noexcept;

// Steps of a GEMM, without its epilogue: any GEMM, one that cuBLAS computes directly, i8, f8, and f32 by shorter
// formats.
sg_status run_without_epilogue(gemm_resources &in, const sg_backend_gemm &what) noexcept;
// Without copies of operands that would suit tensor cores.
sg_status run_as_given(gemm_resources &in, const sg_backend_gemm &what) noexcept;
sg_status run_blas(gemm_resources &in, const sg_backend_gemm &what) noexcept;
sg_status run_blas_prepared(gemm_resources &in,
                            const sg_backend_gemm &what) noexcept;  // pointer arrays are in device memory
sg_status run_i8(gemm_resources &in, const sg_backend_gemm &what) noexcept;
sg_status run_misaligned(gemm_resources &in, const sg_backend_gemm &what) noexcept;
sg_status run_f8(gemm_resources &in, const sg_backend_gemm &what) noexcept;
sg_status run_split(gemm_resources &in, const sg_backend_gemm &what) noexcept;
sg_status run_padded(gemm_resources &in, const sg_backend_gemm &what) noexcept;
sg_backend_gemm without_epilogue(const sg_backend_gemm &what) noexcept;
// Whether it is computed from short parts of f32 operands.
bool splits_operands(const sg_backend_gemm &what) noexcept;
bool is_large_enough_to_split(const sg_backend_gemm &what) noexcept;
// Whether copies with sizes and addresses for tensor cores are worth making.
bool gains_by_padding(const call_stream &in, const sg_backend_gemm &what) noexcept;

// Whether run_f8() tries the chip's own f8 arithmetic. `alone`: not in a group; small ones of a group are faster if
// converted and computed in one call.
bool multiplies_f8(const call_stream &in, const sg_backend_gemm &what, bool alone) noexcept;
// GEMMs of f8, of one pair of types, converted to bf16 or f16; the converted operands are in device memory until this
// object's destruction, in stream order. The results and scalars are the same.
class widened_f8 {
 public:
  explicit widened_f8(gemm_resources &in) noexcept : in_(in) {}
  ~widened_f8() { in_.release(memory_); }
  widened_f8(const widened_f8 &) = delete;
  widened_f8 &operator=(const widened_f8 &) = delete;
  // `out`: as many GEMMs, with converted operands.
  sg_status convert(const gemm_list &gemms, sg_backend_gemm *out) noexcept;

 private:
  gemm_resources &in_;
  void *memory_ = nullptr;
};

inline bool has_pointers(const sg_backend_gemm &what) noexcept {
  return what.a_array != nullptr || what.b_array != nullptr || what.c_array != nullptr;
}
// Alignment of addresses, rows and depths for tensor cores, in bytes.
inline constexpr std::int64_t tensor_core_alignment = 16;
inline bool is_aligned(const void *memory, std::int64_t ld_bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory) % tensor_core_alignment == 0 && ld_bytes % tensor_core_alignment == 0;
}
// Whether sizes, addresses and strides of a GEMM of 16 bits are those of tensor cores.
bool suits_tensor_cores(const sg_backend_gemm &what) noexcept;
// Whether a complex operand is aligned to its parts only, which cuBLAS refuses.
bool is_misaligned(const sg_backend_gemm &what) noexcept;
// Item i of a batch as a single GEMM.
sg_backend_gemm item_of(const sg_backend_gemm &what, std::int64_t i) noexcept;

// Types of a cuBLAS call (one call for each 65,535 items).
struct blas_types {
  cudaDataType in, out;
  cublasComputeType_t compute;
};
bool blas_types_of(const sg_backend_gemm &what, blas_types &out) noexcept;  // false: cuBLAS has no such GEMM
// Whether run_gemm() is exactly one cuBLAS call.
bool is_plain_blas(const call_stream &in, const sg_backend_gemm &what) noexcept;
cublasOperation_t blas_op_of(sg_transpose op) noexcept;

// A scalar in the GEMM's compute type.
union blas_scalar {
  double f64[2];
  float f32[2];
  blas_scalar(const sg_scalar &from, sg_dtype in_type) noexcept;
};
struct blas_scalars {
  const void *alpha, *beta;
};
cublasStatus_t call_blas(cublasHandle_t handle, const sg_backend_gemm &what, const blas_types &types,
                         const blas_scalars &scalars) noexcept;
sg_status blas_failure(cublasStatus_t status, const char *what = "GEMM") noexcept;
// Whether environment variables make cuBLAS compute f32 in tf32, or f32 and f64 with shorter formats, without a
// request. Its pedantic compute types ignore them.
bool environment_shortens() noexcept;

// The first elements of an item's operands.
item_bases bases_of(const sg_backend_gemm &what, std::int64_t item) noexcept;
// Prepares a batch with pointer arrays for device calls: as a strided batch if its items are evenly spaced, otherwise
// with all three arrays in device memory, valid until the stream's next GEMM.
sg_status prepare_operands(gemm_resources &in, sg_backend_gemm &what) noexcept;
// Converts to a strided batch; false: the addresses are not evenly spaced.
bool become_strided(sg_backend_gemm &what) noexcept;
// Whether cuBLAS may get the items as pointer arrays. It cannot inspect the pointers, and its kernels for tensor cores
// read 16 bytes at a time: on an H100 a batch of bf16 items at odd multiples of 2 bytes loses the context with a
// misaligned address.
bool takes_pointers(const sg_backend_gemm &what) noexcept;
sg_status upload_pointers(gemm_resources &in, sg_backend_gemm &what) noexcept;  // always with arrays, for any batch

}  // namespace sg::cuda
