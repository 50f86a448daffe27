// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/libraries/blas.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <mutex>

namespace sg::cuda {
namespace {

#define SG_TEXT(x) #x
#define SG_TEXT_OF(x) SG_TEXT(x)
constexpr const char *library = "libcublas.so." SG_TEXT_OF(CUBLAS_VER_MAJOR);
// The toolkit's folder, for loaders that do not search it.
constexpr const char *library_of_toolkit = "/usr/local/cuda/lib64/libcublas.so." SG_TEXT_OF(CUBLAS_VER_MAJOR);

struct loaded {
  blas_functions functions{};
  bool ok = false;
  char reason[400] = "";

  loaded() noexcept {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::snprintf(reason, sizeof reason, "cuBLAS cannot be loaded: %s", dlerror());
      handle = dlopen(library_of_toolkit, RTLD_NOW | RTLD_LOCAL);
    }
    if (handle == nullptr) return;
    const auto find = [&]<class Function>(Function &function, const char *name) {
      function = reinterpret_cast<Function>(dlsym(handle, name));
      if (function == nullptr) std::snprintf(reason, sizeof reason, "%s is too old: it has no %s", library, name);
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
    void *handle = dlopen("libcublasLt.so." SG_TEXT_OF(CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
      handle = dlopen("/usr/local/cuda/lib64/libcublasLt.so." SG_TEXT_OF(CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
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

}  // namespace sg::cuda
