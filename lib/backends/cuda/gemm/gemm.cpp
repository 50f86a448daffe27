// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/gemm/gemm.hpp"

#include <algorithm>
#include <cstdlib>

#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/log.hpp"
#include "backends/cuda/gemm/matmul.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/libraries/blas.hpp"

namespace sg::cuda {

cublasOperation_t blas_op_of(sg_transpose op) noexcept {
  return op == SG_TRANSPOSE_N ? CUBLAS_OP_N : op == SG_TRANSPOSE_T ? CUBLAS_OP_T : CUBLAS_OP_C;
}

bool environment_shortens() noexcept {
  static const bool any = [] {
    for (const char *name : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION",
                             "CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"}) {
      const char *value = std::getenv(name);
      if (value != nullptr && value[0] != '0') return true;
    }
    return false;
  }();
  return any;
}

namespace {

cublasComputeType_t f32_compute(sg_compute compute) noexcept {
  switch (compute) {
    case SG_COMPUTE_TF32: return CUBLAS_COMPUTE_32F_FAST_TF32;
    case SG_COMPUTE_BF16: return CUBLAS_COMPUTE_32F_FAST_16BF;
    default: return environment_shortens() ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
  }
}

}  // namespace

// Complex GEMMs are pedantic: the other compute types may use three real multiplications, four are more accurate.
bool blas_types_of(const sg_backend_gemm &what, blas_types &out) noexcept {
  const cudaDataType narrow_out = what.out_type == SG_DTYPE_F16 ? CUDA_R_16F : CUDA_R_16BF;
  const cudaDataType short_out = what.out_type == SG_DTYPE_F32 ? CUDA_R_32F : narrow_out;
  switch (what.in_type) {
    case SG_DTYPE_F64:
      out = {CUDA_R_64F, CUDA_R_64F, environment_shortens() ? CUBLAS_COMPUTE_64F_PEDANTIC : CUBLAS_COMPUTE_64F};
      return true;
    case SG_DTYPE_F32: out = {CUDA_R_32F, CUDA_R_32F, f32_compute(what.compute)}; return true;
    case SG_DTYPE_C64: out = {CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F_PEDANTIC}; return true;
    case SG_DTYPE_C128: out = {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F_PEDANTIC}; return true;
    case SG_DTYPE_F16: out = {CUDA_R_16F, short_out, CUBLAS_COMPUTE_32F}; return true;
    case SG_DTYPE_BF16: out = {CUDA_R_16BF, short_out, CUBLAS_COMPUTE_32F}; return true;
    case SG_DTYPE_F8_E4M3: out = {CUDA_R_8F_E4M3, short_out, CUBLAS_COMPUTE_32F}; return true;
    default: return false;
  }
}

blas_scalar::blas_scalar(const sg_scalar &from, sg_dtype in_type) noexcept {
  if (in_type == SG_DTYPE_F64 || in_type == SG_DTYPE_C128) {
    f64[0] = from.re;
    f64[1] = from.im;
  } else {
    f32[0] = static_cast<float>(from.re);
    f32[1] = static_cast<float>(from.im);
  }
}

namespace {

const void *moved(const void *base, std::int64_t elements, std::int64_t size) noexcept {
  return static_cast<const char *>(base) + elements * size;
}
void *moved(void *base, std::int64_t elements, std::int64_t size) noexcept {
  return static_cast<char *>(base) + elements * size;
}

}  // namespace

sg_backend_gemm item_of(const sg_backend_gemm &what, std::int64_t i) noexcept {
  const std::int64_t in_bytes = element_size(what.in_type), out_bytes = element_size(what.out_type);
  sg_backend_gemm item = what;
  item.batch = 1;
  item.a = what.a_array != nullptr ? what.a_array[i] : moved(what.a, i * what.stride_a, in_bytes);
  item.b = what.b_array != nullptr ? what.b_array[i] : moved(what.b, i * what.stride_b, in_bytes);
  item.c = what.c_array != nullptr ? what.c_array[i] : moved(what.c, i * what.stride_c, out_bytes);
  item.a_array = item.b_array = nullptr;
  item.c_array = nullptr;
  return item;
}

cublasStatus_t call_blas(cublasHandle_t handle, const sg_backend_gemm &g, const blas_types &types,
                         const blas_scalars &scalars) noexcept {
  const auto op_a = blas_op_of(g.op_a), op_b = blas_op_of(g.op_b);
  if (g.batch == 1 && g.a_array == nullptr)
    return blas().gemm(handle, op_a, op_b, g.m, g.n, g.k, scalars.alpha, g.a, types.in, g.lda, g.b, types.in, g.ldb,
                       scalars.beta, g.c, types.out, g.ldc, types.compute, CUBLAS_GEMM_DEFAULT);
  constexpr std::int64_t most = 65535;  // grid limit of some kernels, which map the items to it
  const std::int64_t in_bytes = element_size(g.in_type), out_bytes = element_size(g.out_type);
  for (std::int64_t first = 0; first < g.batch; first += most) {
    const std::int64_t count = std::min(most, g.batch - first);
    cublasStatus_t status =
        g.a_array != nullptr
            ? blas().gemm_pointers(handle, op_a, op_b, g.m, g.n, g.k, scalars.alpha, g.a_array + first, types.in, g.lda,
                                   g.b_array + first, types.in, g.ldb, scalars.beta, g.c_array + first, types.out,
                                   g.ldc, count, types.compute, CUBLAS_GEMM_DEFAULT)
            : blas().gemm_strided(handle, op_a, op_b, g.m, g.n, g.k, scalars.alpha,
                                  moved(g.a, first * g.stride_a, in_bytes), types.in, g.lda, g.stride_a,
                                  moved(g.b, first * g.stride_b, in_bytes), types.in, g.ldb, g.stride_b, scalars.beta,
                                  moved(g.c, first * g.stride_c, out_bytes), types.out, g.ldc, g.stride_c, count,
                                  types.compute, CUBLAS_GEMM_DEFAULT);
    // Sometimes cuBLAS refuses a strided batch of complex GEMMs although it accepts the items: seen on an H100. A
    // refused call has not started.
    if (status == CUBLAS_STATUS_NOT_SUPPORTED && g.a_array == nullptr && g.batch > 1) {
      log_fallback("cuBLAS refuses a strided batch of %lld GEMMs of type %d: each goes by itself",
                   static_cast<long long>(count), int{g.in_type});
      status = CUBLAS_STATUS_SUCCESS;
      for (std::int64_t i = first; i < first + count && status == CUBLAS_STATUS_SUCCESS; ++i)
        status = call_blas(handle, item_of(g, i), types, scalars);
    }
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}

sg_status blas_failure(cublasStatus_t status, const char *what) noexcept {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return SG_STATUS_OK;
    case CUBLAS_STATUS_ALLOC_FAILED: return fail(SG_STATUS_OUT_OF_MEMORY, "cuBLAS has no memory for the %s", what);
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH: return fail(SG_STATUS_UNSUPPORTED, "cuBLAS has no such %s on this device", what);
    default: return fail(SG_STATUS_BACKEND_FAILURE, "cuBLAS: %s", blas().text(status));
  }
}

sg_backend_gemm without_epilogue(const sg_backend_gemm &what) noexcept {
  sg_backend_gemm plain = what;
  plain.bias = nullptr;
  plain.activation = SG_ACTIVATION_NONE;
  return plain;
}

sg_status run_blas_prepared(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  blas_types types;
  if (!blas_types_of(what, types)) return fail(SG_STATUS_UNSUPPORTED, "cuda has no GEMM of these types");
  if (suits_matmul(what)) {
    cublasStatus_t outcome;
    if (const sg_status status = in.run_matmul(without_epilogue(what), outcome)) return status;
    if (outcome != CUBLAS_STATUS_NOT_SUPPORTED) return blas_failure(outcome);
    log_fallback("cuBLASLt has no kernel for %lld x %lld x %lld of type %d: cuBLAS takes it",
                 static_cast<long long>(what.m), static_cast<long long>(what.n), static_cast<long long>(what.k),
                 int{what.in_type});
  }
  cublasHandle_t handle = nullptr;
  if (const sg_status status = in.blas_handle(what.compute_units, handle)) return status;
  const blas_scalar alpha(what.alpha, what.in_type), beta(what.beta, what.in_type);
  const cublasStatus_t outcome = call_blas(handle, what, types, {&alpha, &beta});
  if (outcome != CUBLAS_STATUS_NOT_SUPPORTED) return blas_failure(outcome);
  const auto number = [](std::int64_t x) { return static_cast<long long>(x); };
  return fail(SG_STATUS_UNSUPPORTED,
              "cuBLAS has no GEMM of types %d and %d, compute %d, ops %d and %d, %lld x %lld x %lld, leading "
              "dimensions %lld, "
              "%lld and %lld, batch %lld%s at %p, %p and %p",
              int{what.in_type}, int{what.out_type}, int{what.compute}, int{what.op_a}, int{what.op_b}, number(what.m),
              number(what.n), number(what.k), number(what.lda), number(what.ldb), number(what.ldc), number(what.batch),
              what.a_array != nullptr ? " by pointers" : "", what.a, what.b, what.c);
}

sg_status run_blas(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  sg_backend_gemm there = what;
  if (has_pointers(there) && !takes_pointers(there) && !become_strided(there)) {
    for (std::int64_t i = 0; i < what.batch; ++i)
      if (const sg_status status = run_blas_prepared(in, item_of(what, i))) return status;
    return SG_STATUS_OK;
  }
  if (const sg_status status = prepare_operands(in, there)) return status;
  return run_blas_prepared(in, there);
}

namespace {

// cuBLAS rounds alpha * A * B to C's 16 bits before it adds beta * C, which rounds again: seen on an H100 with
// CUDA 13.0, f16 and bf16, at every size from 256 x 256 x 64 to 4096 x 4096 x 1024.
bool rounds_twice(const sg_backend_gemm &g) noexcept {
  return is_short_float(g.out_type) && (has_epilogue(g) || g.beta.re != 0);  // both read C
}

// alpha * A * B in f32 beside C, then one sum with beta * C and the epilogue, rounded once; item by item.
sg_status run_rounded_once(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  void *memory = nullptr;
  if (const sg_status status = in.acquire(static_cast<std::uint64_t>(what.m * what.n) * 4, &memory)) return status;
  sg_status status = SG_STATUS_OK;
  for (std::int64_t i = 0; i < what.batch && status == SG_STATUS_OK; ++i) {
    sg_backend_gemm item = item_of(what, i);
    void *c = item.c;
    item.c = memory;
    item.ldc = what.m;
    item.out_type = SG_DTYPE_F32;
    item.beta = {0, 0};
    status = run_without_epilogue(in, item);
    const sg_backend_reduce sum{{sizeof(sg_backend_reduce), SG_BACKEND_REDUCE},
                                what.m,
                                what.n,
                                SG_DTYPE_F32,
                                what.out_type,
                                what.beta,
                                memory,
                                1,
                                what.m,
                                what.m * what.n,
                                c,
                                what.ldc,
                                bias_of_item(what, i),
                                what.bias_per_row,
                                what.activation};
    if (status == SG_STATUS_OK) status = in.owner().check(launch_reduce(sum, in.native()), "starting a reduction");
  }
  in.release(memory);
  return status;
}

}  // namespace

bool splits_operands(const sg_backend_gemm &what) noexcept {
  return what.in_type == SG_DTYPE_F32 && (what.compute == SG_COMPUTE_3XTF32 || what.compute == SG_COMPUTE_BF16X3);
}

bool is_plain_blas(const call_stream &in, const sg_backend_gemm &what) noexcept {
  return what.in_type != SG_DTYPE_I8 && !is_f8(what.in_type) && !splits_operands(what) && !is_misaligned(what) &&
         !rounds_twice(what) && !gains_by_padding(in, what);
}

sg_status run_without_epilogue(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  return gains_by_padding(in, what) ? run_padded(in, what) : run_as_given(in, what);
}

sg_status run_as_given(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  if (what.in_type == SG_DTYPE_I8) return run_i8(in, what);
  if (splits_operands(what)) return run_split(in, what);
  if (is_misaligned(what)) return run_misaligned(in, what);
  // GEMMs converted to 16 bits first may be rounded once like those.
  if (rounds_twice(what) && (!is_f8(what.in_type) || multiplies_f8(in, what, true))) return run_rounded_once(in, what);
  return is_f8(what.in_type) ? run_f8(in, what) : run_blas(in, what);
}

// So many columns of C, from `first` on.
sg_backend_gemm columns_of(sg_backend_gemm what, std::int64_t first, std::int64_t columns) noexcept {
  what.b = static_cast<const char *>(what.b) + first * what.ldb * element_size(what.in_type);
  what.c = static_cast<char *>(what.c) + first * what.ldc * element_size(what.out_type);
  what.n = columns;
  return what;
}

// A number of columns that is no multiple of eight is two GEMMs with a fused epilogue, which both compute some columns:
// of many elements that is faster than sums in f32 in memory.
bool suits_overlapping_columns(const sg_backend_gemm &what) noexcept {
  constexpr std::int64_t many_elements = 1 << 19;
  const std::int64_t whole = what.n / 8 * 8;
  return has_epilogue(what) && what.n > 8 && what.n != whole && what.m * what.n >= many_elements &&
         what.op_b == SG_TRANSPOSE_N && suits_fused_epilogue(columns_of(what, 0, whole));
}

sg_status run_gemm(gemm_resources &in, const sg_backend_gemm &what) noexcept {
  if (suits_overlapping_columns(what)) {
    const sg_status status = run_gemm(in, columns_of(what, 0, what.n / 8 * 8));
    return status == SG_STATUS_OK ? run_gemm(in, columns_of(what, what.n - 8, 8)) : status;
  }
  if (suits_fused_epilogue(what)) {
    cublasStatus_t outcome;
    if (const sg_status status = in.run_matmul(what, outcome)) return status;
    if (outcome != CUBLAS_STATUS_NOT_SUPPORTED) return blas_failure(outcome);
  }
  const sg_status status = run_without_epilogue(in, what);
  if (status != SG_STATUS_OK || !has_separate_epilogue(what)) return status;
  const sg_backend_command *const one = &what.header;
  return add_epilogues(in, {&one, 1}, nullptr);
}

}  // namespace sg::cuda
