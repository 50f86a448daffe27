// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/libraries/blas.hpp"

#include <dlfcn.h>

#include <cstdio>

#include "backends/cuda/libraries/open.hpp"

namespace sg::cuda {
namespace {

// The functions used and the values of their enumerators are the same in both. The major version of the toolkit that
// built the plugin comes first: it runs on the same drivers and GPUs.
constexpr int majors[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MAJOR == 13 ? 12 : 13};

struct loaded {
  blas_functions functions{};
  bool ok = false;
  int major = 0;
  char reason[400] = "";

  loaded() noexcept {
    const opened library = open_library("cublas", majors);
    void *const handle = library.handle;
    major = library.major;
    if (handle == nullptr) {
      const int used = std::snprintf(reason, sizeof reason, "cuBLAS cannot be loaded: ");
      describe_load_failure("cublas", majors, reason + used, sizeof reason - used);
      return;
    }
    const auto find = [&]<class Function>(Function &function, const char *name) {
      function = reinterpret_cast<Function>(dlsym(handle, name));
      if (function == nullptr)
        std::snprintf(reason, sizeof reason, "libcublas.so.%d is too old: it has no %s", major, name);
      return function != nullptr;
    };
    ok = find(functions.create, "cublasCreate_v2") && find(functions.destroy, "cublasDestroy_v2") &&
         find(functions.set_stream, "cublasSetStream_v2") && find(functions.set_workspace, "cublasSetWorkspace_v2") &&
         find(functions.set_math_mode, "cublasSetMathMode") && find(functions.version, "cublasGetVersion_v2") &&
         find(functions.text, "cublasGetStatusString") && find(functions.gemm, "cublasGemmEx_64") &&
         find(functions.gemm_strided, "cublasGemmStridedBatchedEx_64") &&
#define SG_BLAS_FIND(NAME) find(functions.NAME, "cublas" #NAME "_v2_64") &&
         SG_BLAS_ROUTINES(SG_BLAS_FIND)
#undef SG_BLAS_FIND
             find(functions.gemm_pointers, "cublasGemmBatchedEx_64") &&
         find(functions.set_units, "cublasSetSmCountTarget");
    functions.gemm_grouped =
        reinterpret_cast<decltype(functions.gemm_grouped)>(dlsym(handle, "cublasGemmGroupedBatchedEx_64"));
  }
};

const loaded &the_library() noexcept {
  static const loaded only;
  return only;
}

struct loaded_lt {
  lt_functions functions{};
  bool ok = false;

  loaded_lt() noexcept {
    const int major_of_blas[] = {the_library().major};
    void *const handle = open_library("cublasLt", major_of_blas).handle;
    if (handle == nullptr) return;
    const auto find = [&]<class Function>(Function &function, const char *name) {
      function = reinterpret_cast<Function>(dlsym(handle, name));
      return function != nullptr;
    };
    ok = find(functions.desc_create, "cublasLtMatmulDescCreate") &&
         find(functions.desc_destroy, "cublasLtMatmulDescDestroy") &&
         find(functions.desc_set, "cublasLtMatmulDescSetAttribute") &&
         find(functions.layout_create, "cublasLtMatrixLayoutCreate") &&
         find(functions.layout_destroy, "cublasLtMatrixLayoutDestroy") &&
         find(functions.preference_create, "cublasLtMatmulPreferenceCreate") &&
         find(functions.preference_destroy, "cublasLtMatmulPreferenceDestroy") &&
         find(functions.preference_set, "cublasLtMatmulPreferenceSetAttribute") &&
         find(functions.choose, "cublasLtMatmulAlgoGetHeuristic") && find(functions.run, "cublasLtMatmul") &&
         find(functions.check, "cublasLtMatmulAlgoCheck") &&
         find(functions.kernel_get, "cublasLtMatmulAlgoConfigGetAttribute") &&
         find(functions.version, "cublasLtGetVersion");
  }
};

const loaded_lt &the_lt() noexcept {
  static const loaded_lt only;
  return only;
}

}  // namespace

bool lt_is_loaded() noexcept { return the_lt().ok; }
const lt_functions &lt() noexcept { return the_lt().functions; }

const blas_functions *load_blas(char *reason, std::uint64_t size) noexcept {
  const loaded &library = the_library();
  if (library.ok) return &library.functions;
  std::snprintf(reason, size, "%.*s", static_cast<int>(size) - 1, library.reason);
  return nullptr;
}

const blas_functions &blas() noexcept { return the_library().functions; }

void ask_lt_once(cublasHandle_t handle) noexcept {
  if (!lt_is_loaded()) return;
  constexpr std::uint64_t n = 64;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t matrix = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t proposal;
  int found = 0;
  if (lt().desc_create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
      lt().layout_create(&matrix, CUDA_R_32F, n, n, n) == CUBLAS_STATUS_SUCCESS &&
      lt().preference_create(&preference) == CUBLAS_STATUS_SUCCESS)
    lt().choose(reinterpret_cast<cublasLtHandle_t>(handle), desc, matrix, matrix, matrix, matrix, preference, 1,
                &proposal, &found);
  if (preference != nullptr) lt().preference_destroy(preference);
  if (matrix != nullptr) lt().layout_destroy(matrix);
  if (desc != nullptr) lt().desc_destroy(desc);
}

}  // namespace sg::cuda
