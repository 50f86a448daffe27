// SPDX-License-Identifier: Apache-2.0
#include "matmul.hpp"

#include <algorithm>
#include <new>

#include "blas.hpp"
#include "gemm.hpp"

namespace sg::cuda {
namespace {

constexpr std::size_t most_known = 512;  // shapes of a stream

std::int32_t alignment_of(const void *memory) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return static_cast<std::int32_t>(std::min<std::uintptr_t>(256, address & (~address + 1)));
}

// Sums of parts only in the type that they are computed in.
constexpr std::uint32_t exact_reductions(bool narrow_out) noexcept {
  return narrow_out ? std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}
                    : std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE} | CUBLASLT_REDUCTION_SCHEME_INPLACE;
}

bool create(cublasLtMatrixLayout_t &out, cudaDataType type, std::int64_t rows, std::int64_t cols, std::int64_t ld) noexcept {
  return lt().layout_create(&out, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), ld) ==
         CUBLAS_STATUS_SUCCESS;
}

}  // namespace

matmul_key matmul_key_of(const sg_backend_gemm &g) noexcept {
  return {g.m,       g.n,       g.k,          g.lda,          g.ldb,           g.ldc,          g.op_a,
          g.op_b,    g.in_type, g.out_type,   g.compute,      g.compute_units, alignment_of(g.a), alignment_of(g.b),
          alignment_of(g.c)};
}

std::size_t matmul_key_hash::operator()(const matmul_key &key) const noexcept {
  std::size_t hash = 0;
  for (const std::int64_t x : {key.m, key.n, key.k, key.lda, key.ldb, key.ldc, std::int64_t{key.in_type} << 8 | key.compute,
                               std::int64_t{key.op_a} << 8 | key.op_b, std::int64_t{key.units}})
    hash = (hash ^ static_cast<std::size_t>(x)) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 32);
}

bool suits_matmul(const sg_backend_gemm &g) noexcept {
  if (!lt_is_loaded() || g.batch != 1 || g.a_array != nullptr || g.b_array != nullptr || g.c_array != nullptr) return false;
  return g.in_type == SG_DTYPE_F64 || g.in_type == SG_DTYPE_F32 || g.in_type == SG_DTYPE_F16 || g.in_type == SG_DTYPE_BF16;
}

matmul::~matmul() {
  if (product_ != nullptr) lt().desc_destroy(product_);
  for (const auto layout : {a_, b_, c_})
    if (layout != nullptr) lt().layout_destroy(layout);
}

bool matmul::describe(cublasLtHandle_t handle, const sg_backend_gemm &g, std::uint64_t workspace_bytes) noexcept {
  blas_types types;
  if (!blas_types_of(g, types)) return false;
  const cudaDataType scalar = g.in_type == SG_DTYPE_F64 ? CUDA_R_64F : CUDA_R_32F;
  const auto op_a = blas_op_of(g.op_a), op_b = blas_op_of(g.op_b);
  const auto set = [&](cublasLtMatmulDescAttributes_t name, const auto &value) {
    return lt().desc_set(product_, name, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
  };
  if (lt().desc_create(&product_, types.compute, scalar) != CUBLAS_STATUS_SUCCESS ||
      !set(CUBLASLT_MATMUL_DESC_TRANSA, op_a) || !set(CUBLASLT_MATMUL_DESC_TRANSB, op_b) ||
      (g.compute_units > 0 && !set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, g.compute_units)))
    return false;
  const bool a_turned = g.op_a != SG_OP_N, b_turned = g.op_b != SG_OP_N;
  if (!create(a_, types.in, a_turned ? g.k : g.m, a_turned ? g.m : g.k, g.lda) ||
      !create(b_, types.in, b_turned ? g.n : g.k, b_turned ? g.k : g.n, g.ldb) || !create(c_, types.out, g.m, g.n, g.ldc))
    return false;
  cublasLtMatmulPreference_t wishes = nullptr;
  if (lt().wishes_create(&wishes) != CUBLAS_STATUS_SUCCESS) return false;
  const auto wish = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
    return lt().wishes_set(wishes, name, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
  };
  const auto alignment = [](const void *memory) { return static_cast<std::uint32_t>(alignment_of(memory)); };
  const bool narrow_out = g.out_type == SG_DTYPE_F16 || g.out_type == SG_DTYPE_BF16;
  int found = 0;
  const bool asked =
      wish(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes) &&
      wish(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, exact_reductions(narrow_out)) &&
      wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(g.a)) &&
      wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(g.b)) &&
      wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(g.c)) &&
      wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(g.c)) &&
      lt().choose(handle, product_, a_, b_, c_, c_, wishes, 1, &choice_, &found) == CUBLAS_STATUS_SUCCESS;
  lt().wishes_destroy(wishes);
  return asked && found == 1 && choice_.state == CUBLAS_STATUS_SUCCESS && choice_.workspaceSize <= workspace_bytes;
}

cublasStatus_t matmul::run(cublasLtHandle_t handle, const sg_backend_gemm &g, void *workspace, cudaStream_t in) const noexcept {
  const blas_scalar alpha(g.alpha, g.in_type), beta(g.beta, g.in_type);
  return lt().run(handle, product_, &alpha, g.a, a_, g.b, b_, &beta, g.c, c_, g.c, c_, &choice_.algo, workspace,
                  choice_.workspaceSize, in);
}

const matmul *matmul_cache::find(cublasLtHandle_t handle, const sg_backend_gemm &what, std::uint64_t workspace_bytes) noexcept {
  try {
    const matmul_key key = matmul_key_of(what);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second.get();
    if (known_.size() == most_known) known_.clear();
    auto fresh = std::make_unique<matmul>();
    if (!fresh->describe(handle, what, workspace_bytes)) fresh.reset();
    return known_.emplace(key, std::move(fresh)).first->second.get();
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

}  // namespace sg::cuda
