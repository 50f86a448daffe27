// SPDX-License-Identifier: Apache-2.0
// cuBLAS 13 or 12 and its cublasLt, loaded on first use: without them the plugin still loads and reports their absence.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstdint>

namespace sg::cuda {

// Routines of one type each: X(NAME) for cublasNAME_v2_64.
#define SG_BLAS_ROUTINES(X) \
  X(Strsm)                  \
  X(Dtrsm)                  \
  X(Ctrsm)                  \
  X(Ztrsm)                  \
  X(Strmm)                  \
  X(Dtrmm)                  \
  X(Ctrmm)                  \
  X(Ztrmm)                  \
  X(Ssymm)                  \
  X(Dsymm)                  \
  X(Csymm)                  \
  X(Zsymm)                  \
  X(Chemm)                  \
  X(Zhemm)                  \
  X(Ssyrk)                  \
  X(Dsyrk)                  \
  X(Csyrk)                  \
  X(Zsyrk)                  \
  X(Cherk)                  \
  X(Zherk)                  \
  X(Ssyr2k)                 \
  X(Dsyr2k)                 \
  X(Csyr2k)                 \
  X(Zsyr2k)                 \
  X(Cher2k)                 \
  X(Zher2k)

struct blas_functions {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSetWorkspace_v2) set_workspace;
  decltype(&cublasSetMathMode) set_math_mode;
  decltype(&cublasGetVersion_v2) version;
  decltype(&cublasGetStatusString) text;
  decltype(&cublasGemmEx_64) gemm;
  decltype(&cublasGemmStridedBatchedEx_64) gemm_strided;
  decltype(&cublasGemmBatchedEx_64) gemm_pointers;
  decltype(&cublasSetSmCountTarget) set_units;
#define SG_BLAS_MEMBER(NAME) decltype(&cublas##NAME##_v2_64) NAME;
  SG_BLAS_ROUTINES(SG_BLAS_MEMBER)
#undef SG_BLAS_MEMBER
  decltype(&cublasGemmGroupedBatchedEx_64) gemm_grouped;  // nullptr before cuBLAS 12.5
};

struct lt_functions {
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
  decltype(&cublasLtMatmulAlgoCheck) check;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) kernel_get;
  decltype(&cublasLtMatmul) run;
  decltype(&cublasLtGetVersion) version;
};

// The functions; nullptr: a reason of at most `size` bytes. Any thread; loads once and stays loaded.
const blas_functions *load_blas(char *reason, std::uint64_t size) noexcept;
// The functions after a successful load_blas().
const blas_functions &blas() noexcept;
// cublasLt, which cuBLAS itself loads; optional.
bool lt_is_loaded() noexcept;
const lt_functions &lt() noexcept;
// Asks cublasLt for a kernel, if it is loaded.
void ask_lt_once(cublasHandle_t handle) noexcept;

}  // namespace sg::cuda
