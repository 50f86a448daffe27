// SPDX-License-Identifier: Apache-2.0
// cuBLAS and cublasLt on the emulated GPU, as far as the plugin calls them. The arithmetic is the simulated chip's:
// sums in double precision, rounded once where the plugin may rely on that, otherwise twice. Misaligned operands are
// refused as by a card.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <streamgemm/backend.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "backends/sim/arithmetic.hpp"
#include "backends/sim/element.hpp"
#include "blas_context.hpp"
#include "blas_values.hpp"
#include "gpu.hpp"

using emulated::call;
using emulated::entered;
using emulated::reached;
using emulated::status_of;
using sg::is_complex;

namespace {

std::optional<sg_dtype> type_of(cudaDataType type) noexcept {
  switch (type) {
    case CUDA_R_64F: return SG_DTYPE_F64;
    case CUDA_R_32F: return SG_DTYPE_F32;
    case CUDA_C_64F: return SG_DTYPE_C128;
    case CUDA_C_32F: return SG_DTYPE_C64;
    case CUDA_R_16F: return SG_DTYPE_F16;
    case CUDA_R_16BF: return SG_DTYPE_BF16;
    case CUDA_R_8I: return SG_DTYPE_I8;
    case CUDA_R_32I: return SG_DTYPE_I32;
    case CUDA_R_8F_E4M3: return SG_DTYPE_F8_E4M3;
    default: return std::nullopt;
  }
}

using emulated::op_of;

// The i-th of some scalars, in the GEMM's compute type.
sg_scalar scalar_at(const void *from, std::int64_t i, cublasComputeType_t compute, bool is_complex) noexcept {
  const std::int64_t first = is_complex ? 2 * i : i;
  if (compute == CUBLAS_COMPUTE_32I) return {double(static_cast<const std::int32_t *>(from)[first]), 0};
  const bool f64 = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
  const auto at = [&](std::int64_t n) {
    return f64 ? static_cast<const double *>(from)[n] : double(static_cast<const float *>(from)[n]);
  };
  return {at(first), is_complex ? at(first + 1) : 0};
}

using emulated::has_rows;

// Whether cuBLAS supports it; the caller sets the stride and array fields.
cublasStatus_t gemm_desc_of(cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
                            std::int64_t k, cudaDataType type_a, std::int64_t lda, cudaDataType type_b,
                            std::int64_t ldb, cudaDataType type_c, std::int64_t ldc, sg_backend_gemm &out) noexcept {
  const auto in = type_of(type_a), to = type_of(type_c);
  if (type_a != type_b || !in || !to || !sg::is_gemm_type(*in, *to)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m < 0 || n < 0 || k < 0 || !has_rows(lda, op_a == CUBLAS_OP_N ? m : k) ||
      !has_rows(ldb, op_b == CUBLAS_OP_N ? k : n) || !has_rows(ldc, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (*in == SG_DTYPE_I8 && (lda % 4 != 0 || ldb % 4 != 0)) return CUBLAS_STATUS_NOT_SUPPORTED;
  out = {};
  out.m = m, out.n = n, out.k = k;
  out.batch = 1;
  out.op_a = op_of(op_a), out.op_b = op_of(op_b);
  out.in_type = *in, out.out_type = *to;
  out.lda = lda, out.ldb = ldb, out.ldc = ldc;
  return CUBLAS_STATUS_SUCCESS;
}

sg::sim::item_list strided(const void *first, std::int64_t stride, sg_dtype type) {
  return {static_cast<std::byte *>(const_cast<void *>(first)), stride * sg::element_size(type), {}};
}
// Read when the GEMM runs: the array is in device memory.
sg::sim::item_list listed(const void *const *items, std::int64_t count) {
  sg::sim::item_list list;
  for (std::int64_t i = 0; i < count; ++i)
    list.pointers.push_back(static_cast<std::byte *>(const_cast<void *>(items[i])));
  return list;
}

using emulated::enqueue;

}  // namespace

// --- cuBLAS ---

API cublasStatus_t cublasCreate_v2(cublasHandle_t *out) {
  if (const cublasStatus_t status = entered(call::allocation)) return status;
  *out = new cublasContext{};
  emulated::keep(*out);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  emulated::drop(handle);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void *memory, std::size_t) {
  return reinterpret_cast<std::uintptr_t>(memory) % 256 == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
API cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
API cublasStatus_t cublasSetSmCountTarget(cublasHandle_t, int units) {
  return units >= 0 && units <= 16 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
API cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int *out) {
  *out = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}
API const char *cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED: return "the resource allocation failed";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the function failed to launch on the GPU";
    default: return "another status of the emulated cuBLAS";
  }
}

API cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                                 std::int64_t m, std::int64_t n, std::int64_t k, const void *alpha,
                                                 const void *a, cudaDataType type_a, std::int64_t lda,
                                                 long long stride_a, const void *b, cudaDataType type_b,
                                                 std::int64_t ldb, long long stride_b, const void *beta, void *c,
                                                 cudaDataType type_c, std::int64_t ldc, long long stride_c,
                                                 std::int64_t batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (const cublasStatus_t status = entered(call::command)) return status;
  sg_backend_gemm g;
  if (const auto status = gemm_desc_of(op_a, op_b, m, n, k, type_a, lda, type_b, ldb, type_c, ldc, g)) return status;
  if (emulated::are_refused(g, {a, b, c})) return CUBLAS_STATUS_NOT_SUPPORTED;
  g.batch = batch;
  g.alpha = scalar_at(alpha, 0, compute, is_complex(g.in_type));
  g.beta = scalar_at(beta, 0, compute, is_complex(g.in_type));
  if (const cublasStatus_t status = reached(handle->stream, {a, b, c})) return status;
  return enqueue(handle, [=] {
    emulated::multiply(g, strided(a, stride_a, g.in_type), strided(b, stride_b, g.in_type),
                       strided(c, stride_c, g.out_type));
  });
}

API cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                   std::int64_t m, std::int64_t n, std::int64_t k, const void *alpha, const void *a,
                                   cudaDataType type_a, std::int64_t lda, const void *b, cudaDataType type_b,
                                   std::int64_t ldb, const void *beta, void *c, cudaDataType type_c, std::int64_t ldc,
                                   cublasComputeType_t compute, cublasGemmAlgo_t kernel) {
  return cublasGemmStridedBatchedEx_64(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta,
                                       c, type_c, ldc, 0, 1, compute, kernel);
}

namespace {
// Kernels for tensor cores read and write 16 bytes at a time from each item's start, others complex elements.
bool is_misaligned(const sg_backend_gemm &g, const void *const *a, const void *const *b, void *const *c) {
  if (!sg::is_short_float(g.in_type) && !is_complex(g.in_type)) return false;
  const std::int64_t bytes = sg::is_short_float(g.in_type) ? 16 : sg::element_size(g.in_type);
  const auto is_odd = [=](const void *x) { return !emulated::is_multiple(x, bytes); };
  for (std::int64_t i = 0; i < g.batch; ++i)
    if (is_odd(a[i]) || is_odd(b[i]) || is_odd(c[i])) return true;
  return false;
}
}  // namespace

API cublasStatus_t cublasGemmGroupedBatchedEx_64(cublasHandle_t handle, const cublasOperation_t *op_a,
                                                 const cublasOperation_t *op_b, const std::int64_t *m,
                                                 const std::int64_t *n, const std::int64_t *k, const void *alpha,
                                                 const void *const *a, cudaDataType type_a, const std::int64_t *lda,
                                                 const void *const *b, cudaDataType type_b, const std::int64_t *ldb,
                                                 const void *beta, void *const *c, cudaDataType type_c,
                                                 const std::int64_t *ldc, std::int64_t groups,
                                                 const std::int64_t *sizes, cublasComputeType_t compute) {
  if (const cublasStatus_t status = entered(call::command)) return status;
  std::vector<sg_backend_gemm> gemms(static_cast<std::size_t>(groups));
  for (std::int64_t i = 0; i < groups; ++i) {
    sg_backend_gemm &g = gemms[static_cast<std::size_t>(i)];
    if (const auto status =
            gemm_desc_of(op_a[i], op_b[i], m[i], n[i], k[i], type_a, lda[i], type_b, ldb[i], type_c, ldc[i], g))
      return status;
    g.batch = sizes[i];
    g.alpha = scalar_at(alpha, i, compute, is_complex(g.in_type));
    g.beta = scalar_at(beta, i, compute, is_complex(g.in_type));
  }
  if (const cublasStatus_t status = reached(handle->stream, {a, b, c})) return status;
  return enqueue(handle, [=] {
    std::int64_t first = 0;
    for (const sg_backend_gemm &g : gemms) {
      if (is_misaligned(g, a + first, b + first, c + first)) {
        emulated::misaligned(true);
        return;
      }
      emulated::multiply(g, listed(a + first, g.batch), listed(b + first, g.batch), listed(c + first, g.batch));
      first += g.batch;
    }
  });
}

API cublasStatus_t cublasGemmBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                          std::int64_t m, std::int64_t n, std::int64_t k, const void *alpha,
                                          const void *const *a, cudaDataType type_a, std::int64_t lda,
                                          const void *const *b, cudaDataType type_b, std::int64_t ldb, const void *beta,
                                          void *const *c, cudaDataType type_c, std::int64_t ldc, std::int64_t batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  return cublasGemmGroupedBatchedEx_64(handle, &op_a, &op_b, &m, &n, &k, alpha, a, type_a, &lda, b, type_b, &ldb, beta,
                                       c, type_c, &ldc, 1, &batch, compute);
}

// --- cublasLt ---

namespace {

struct matmul_desc {
  cublasComputeType_t compute;
  cublasOperation_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
};
struct layout {
  cudaDataType type;
  std::int64_t rows, cols, ld;
};
struct preference {};

matmul_desc &of(cublasLtMatmulDesc_t x) { return *reinterpret_cast<matmul_desc *>(x); }
layout &of(cublasLtMatrixLayout_t x) { return *reinterpret_cast<layout *>(x); }

template <class T, class Handle>
cublasStatus_t create(Handle *out, T value) {
  if (const cublasStatus_t status = entered(call::allocation)) return status;
  *out = reinterpret_cast<Handle>(new T(value));
  return CUBLAS_STATUS_SUCCESS;
}

// A kernel is identified by its first word. All of them support every GEMM, the later ones with a workspace.
constexpr std::uint64_t first_kernel = 0x5e6d0001;
constexpr int kernels = 3;

void describe(int kernel, cublasLtMatmulHeuristicResult_t &out) {
  out = {};
  out.algo.data[0] = first_kernel + static_cast<std::uint64_t>(kernel);
  out.workspaceSize = static_cast<std::size_t>(kernel) << 10;
  out.state = CUBLAS_STATUS_SUCCESS;
  out.wavesCount = 1;
}

cublasStatus_t gemm_desc_of(cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                            cublasLtMatrixLayout_t c, sg_backend_gemm &out) noexcept {
  const matmul_desc &d = of(what);
  const std::int64_t k = d.op_a == CUBLAS_OP_N ? of(a).cols : of(a).rows;
  if (of(a).type == CUDA_R_8F_E4M3 && (d.op_a == CUBLAS_OP_N || d.op_b != CUBLAS_OP_N || k % 16 != 0))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return gemm_desc_of(d.op_a, d.op_b, of(c).rows, of(c).cols, k, of(a).type, of(a).ld, of(b).type, of(b).ld, of(c).type,
                      of(c).ld, out);
}

// The bias is a value for each row of C.
void add_epilogue(const matmul_desc &from, sg_backend_gemm &to) noexcept {
  switch (from.epilogue) {
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_RELU: to.activation = SG_ACTIVATION_RELU; break;
    default: break;
  }
  const bool biased = from.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS || from.epilogue == CUBLASLT_EPILOGUE_BIAS;
  to.bias = biased ? from.bias : nullptr;
  to.bias_per_row = 1;
}

}  // namespace

API std::size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }

API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType) {
  return create(out, matmul_desc{compute});
}
API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t x) {
  delete &of(x);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t x, cublasLtMatmulDescAttributes_t name,
                                                  const void *value, std::size_t size) {
  if (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
    std::memcpy(&of(x).bias, value, size);
    return CUBLAS_STATUS_SUCCESS;
  }
  if (size != 4) return CUBLAS_STATUS_INVALID_VALUE;
  if (name == CUBLASLT_MATMUL_DESC_EPILOGUE) std::memcpy(&of(x).epilogue, value, size);
  if (name == CUBLASLT_MATMUL_DESC_TRANSA) std::memcpy(&of(x).op_a, value, size);
  if (name == CUBLASLT_MATMUL_DESC_TRANSB) std::memcpy(&of(x).op_b, value, size);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, std::uint64_t rows,
                                              std::uint64_t cols, std::int64_t ld) {
  return create(out, layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(cols), ld});
}
API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t x) {
  delete &of(x);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) { return create(out, preference{}); }
API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t x) {
  delete reinterpret_cast<preference *>(x);
  return CUBLAS_STATUS_SUCCESS;
}
API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                        cublasLtMatmulPreferenceAttributes_t, const void *,
                                                        std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

// The library makes static objects at its first call; a call after their destruction by exit ends the process.
class lazily_made {
 public:
  ~lazily_made() { is_destroyed_ = true; }
  static void use() {
    static lazily_made only;
    for (int i = 0; i < 200 && !only.is_destroyed_; ++i) std::this_thread::yield();  // a call takes some time
    if (only.is_destroyed_) std::abort();
  }

 private:
  volatile bool is_destroyed_ = false;
};

API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a,
                                                  cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                                  cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int most,
                                                  cublasLtMatmulHeuristicResult_t *out, int *found) {
  lazily_made::use();
  *found = 0;
  sg_backend_gemm g;
  if (const cublasStatus_t status = gemm_desc_of(what, a, b, c, g)) return status;
  for (; *found < std::min(most, kernels); ++*found) describe(*found, out[*found]);
  return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t a,
                                           cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                           const cublasLtMatmulAlgo_t *kernel, cublasLtMatmulHeuristicResult_t *out) {
  sg_backend_gemm g;
  if (const cublasStatus_t status = gemm_desc_of(what, a, b, c, g)) return status;
  if (kernel->data[0] < first_kernel || kernel->data[0] >= first_kernel + kernels) return CUBLAS_STATUS_INVALID_VALUE;
  describe(static_cast<int>(kernel->data[0] - first_kernel), *out);
  return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *,
                                                        cublasLtMatmulAlgoConfigAttributes_t, void *out,
                                                        std::size_t size, std::size_t *written) {
  std::memset(out, 0, size);  // no reduction scheme
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t what, const void *alpha, const void *a,
                                  cublasLtMatrixLayout_t layout_a, const void *b, cublasLtMatrixLayout_t layout_b,
                                  const void *beta, const void *c, cublasLtMatrixLayout_t layout_c, void *d,
                                  cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *kernel, void *workspace,
                                  std::size_t workspace_bytes, cudaStream_t in) {
  if (const cublasStatus_t status = entered(call::command)) return status;
  sg_backend_gemm g;
  if (const cublasStatus_t status = gemm_desc_of(what, layout_a, layout_b, layout_c, g)) return status;
  cublasLtMatmulHeuristicResult_t needs;
  if (cublasLtMatmulAlgoCheck(nullptr, what, layout_a, layout_b, layout_c, layout_c, kernel, &needs) !=
          CUBLAS_STATUS_SUCCESS ||
      needs.workspaceSize > workspace_bytes)
    return CUBLAS_STATUS_INVALID_VALUE;
  g.alpha = scalar_at(alpha, 0, of(what).compute, false);
  g.beta = scalar_at(beta, 0, of(what).compute, false);
  add_epilogue(of(what), g);
  if (emulated::are_refused(g, {a, b, c, d})) return CUBLAS_STATUS_NOT_SUPPORTED;
  const std::size_t used = needs.workspaceSize;
  if (const cublasStatus_t status = reached(in, {a, b, c, d, g.bias, used > 0 ? workspace : nullptr})) return status;
  return status_of(emulated::enqueue(in, [=] {
    if (used > 0) std::memset(workspace, 0x5a, used);
    if (d != c && g.beta.re != 0)  // column by column: the gaps keep their bytes
      for (std::int64_t j = 0; j < g.n; ++j) {
        const std::int64_t at = j * g.ldc * sg::element_size(g.out_type);
        std::memcpy(static_cast<char *>(d) + at, static_cast<const char *>(c) + at,
                    static_cast<std::size_t>(g.m * sg::element_size(g.out_type)));
      }
    emulated::multiply(g, strided(a, 0, g.in_type), strided(b, 0, g.in_type), strided(d, 0, g.out_type), g.bias);
  }));
}
