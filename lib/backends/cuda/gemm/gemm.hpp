// SPDX-License-Identifier: Apache-2.0
// Products.
#pragma once

#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/streams/commands.hpp"
#include "backends/cuda/streams/stream.hpp"

namespace sg::cuda {

// Enqueues it with its epilogue.
sg_status run_gemm(stream &in, const sg_backend_gemm &what) noexcept;
// Enqueues all of them, in as few calls as their shapes allow.
sg_status run_group(stream &in, const gemm_list &items, sg_status *statuses) noexcept;

// Epilogues. Those of products whose C is its own accumulator may follow as a kernel of their own.
bool has_epilogue(const sg_backend_gemm &what) noexcept;
bool has_separate_epilogue(const sg_backend_gemm &what) noexcept;
const void *bias_of_item(const sg_backend_gemm &what, std::int64_t item) noexcept;
// Enqueues those of the products that end apart, in few launches; `statuses`: of the products, which have one type of
// C, or nullptr. Arrays of pointers are the host's.
sg_status add_epilogues(stream &in, const gemm_list &gemms, const sg_status *statuses) noexcept;

// The parts of a product, without its epilogue: all of it, what cuBLAS computes as it is, i8, f8, and f32 through short
// formats.
sg_status run_without_epilogue(stream &in, const sg_backend_gemm &what) noexcept;
sg_status run_blas(stream &in, const sg_backend_gemm &what) noexcept;
sg_status run_blas_there(stream &in, const sg_backend_gemm &what) noexcept;  // arrays of pointers lie on the device
sg_status run_i8(stream &in, const sg_backend_gemm &what) noexcept;
sg_status run_f8(stream &in, const sg_backend_gemm &what) noexcept;
sg_status run_split(stream &in, const sg_backend_gemm &what) noexcept;

constexpr bool is_f8(sg_dtype type) noexcept { return type == SG_DTYPE_F8_E4M3 || type == SG_DTYPE_F8_E5M2; }
// Whether run_f8() tries the chip's own f8 arithmetic. `alone`: there are no others of its kind; small ones that come
// together are better converted, and multiplied in one call.
bool multiplies_f8(const stream &in, const sg_backend_gemm &what, bool alone) noexcept;
// Products of f8 numbers, of one pair of types, as products of bf16 or f16 ones, which lie on the device until the end
// of this object, in the stream's order. The results and scalars are the same.
class widened_f8 {
 public:
  explicit widened_f8(stream &in) noexcept : in_(in) {}
  ~widened_f8() { in_.release(memory_); }
  widened_f8(const widened_f8 &) = delete;
  widened_f8 &operator=(const widened_f8 &) = delete;
  // `out`: as many.
  sg_status bring(const gemm_list &gemms, sg_backend_gemm *out) noexcept;

 private:
  stream &in_;
  void *memory_ = nullptr;
};

inline bool has_pointers(const sg_backend_gemm &what) noexcept {
  return what.a_array != nullptr || what.b_array != nullptr || what.c_array != nullptr;
}
// What tensor cores want addresses, rows and depths to be multiples of, in bytes.
inline constexpr std::int64_t tensor_core_alignment = 16;
inline bool is_aligned(const void *memory, std::int64_t ld_bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory) % tensor_core_alignment == 0 && ld_bytes % tensor_core_alignment == 0;
}
// Item i of a batch, alone.
sg_backend_gemm item_of(const sg_backend_gemm &what, std::int64_t i) noexcept;

// One cuBLAS call, or one for each 65,535 items.
struct blas_types {
  cudaDataType in, out;
  cublasComputeType_t compute;
};
bool blas_types_of(const sg_backend_gemm &what, blas_types &out) noexcept;  // false: cuBLAS has no such product
// Whether run_gemm() is nothing but one cuBLAS call.
bool is_plain_blas(const sg_backend_gemm &what) noexcept;
cublasOperation_t blas_op_of(sg_op op) noexcept;
std::int64_t element_size(sg_dtype type) noexcept;

// A scalar in the type that the product is computed in.
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
sg_status blas_failure(cublasStatus_t status) noexcept;

// The first elements of an item's operands.
item_bases bases_of(const sg_backend_gemm &what, std::int64_t item) noexcept;
// Makes a batch with arrays of pointers one that the device's calls take: a strided one where its items are evenly
// spaced, otherwise one whose arrays lie on the device, all three, until the stream's next product.
sg_status place_operands(stream &in, sg_backend_gemm &what) noexcept;
// Makes it a strided batch, if its addresses are as far from each other as it takes.
bool become_strided(sg_backend_gemm &what) noexcept;
// Whether cuBLAS may be given the items as arrays of pointers. It cannot look at those, and its kernels for tensor
// cores read 16 bytes at a time: on an H100 a batch of bf16 items at odd multiples of 2 bytes ends the context with a
// misaligned address.
bool takes_pointers(const sg_backend_gemm &what) noexcept;
sg_status place_pointers(stream &in, sg_backend_gemm &what) noexcept;  // arrays in any case, and of any batch

}  // namespace sg::cuda
