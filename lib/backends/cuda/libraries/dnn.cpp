// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/libraries/dnn.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "backends/cuda/driver/log.hpp"
#include "backends/cuda/libraries/open.hpp"

namespace sg::cuda::dnn {
namespace {

constexpr std::size_t oldest = 90100;

// The one that the process has already, as with PyTorch. Another one is loaded only on request: a library of the
// process that is loaded later and needs cuDNN, perhaps a newer one, would get it by its name.
void *open(bool may_load, const char *path) noexcept {
  if (path != nullptr) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
  constexpr int majors[] = {9};
  return (may_load ? open_library("cudnn", majors) : library_of_process("cudnn", majors)).handle;
}

struct loaded {
  functions all{};
  bool ok = false, wants_same_bits = false;

  loaded() noexcept {
    const char *wanted = secure_getenv("SG_CUDA_CUDNN");
    const auto is_set_to = [wanted](const char *value) { return wanted != nullptr && std::strcmp(wanted, value) == 0; };
    wants_same_bits = is_set_to("deterministic");
    const bool is_path = wanted != nullptr && wanted[0] == '/';
    if (!is_set_to("0")) ok = find_all(is_path || is_set_to("1") || wants_same_bits, is_path ? wanted : nullptr);
  }

  bool find_all(bool may_load, const char *path) noexcept {
    void *const found = open(may_load, path);
    if (found == nullptr) {
      log_fallback("%s, the library's own kernels and GEMMs are used",
                   may_load ? "cuDNN cannot be loaded"
                            : "the process has no cuDNN, and SG_CUDA_CUDNN is not 1, with which attention and "
                              "convolutions would be faster");
      return false;
    }
    const auto find = [&]<class Function>(Function &function, const char *name) {
      function = reinterpret_cast<Function>(dlsym(found, name));
      if (function == nullptr) log_fallback("cuDNN has no %s, the library's own kernels and GEMMs are used", name);
      return function != nullptr;
    };
    if (!find(all.version, "cudnnGetVersion")) return false;
    if (all.version() < oldest) {
      log_fallback("cuDNN %zu is too old, the library's own kernels and GEMMs are used", all.version());
      return false;
    }
    return find(all.text, "cudnnGetErrorString") && find(all.create, "cudnnCreate") &&
           find(all.destroy, "cudnnDestroy") && find(all.set_stream, "cudnnSetStream") &&
           find(all.make, "cudnnBackendCreateDescriptor") && find(all.unmake, "cudnnBackendDestroyDescriptor") &&
           find(all.set, "cudnnBackendSetAttribute") && find(all.get, "cudnnBackendGetAttribute") &&
           find(all.finalize, "cudnnBackendFinalize") && find(all.execute, "cudnnBackendExecute");
  }
};

const loaded &the_library() noexcept {
  static const loaded only;
  return only;
}

}  // namespace

const functions *load() noexcept { return the_library().ok ? &the_library().all : nullptr; }
bool wants_same_bits() noexcept { return the_library().wants_same_bits; }
const functions &library() noexcept { return the_library().all; }

}  // namespace sg::cuda::dnn
