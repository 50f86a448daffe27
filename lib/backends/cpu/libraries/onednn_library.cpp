// SPDX-License-Identifier: Apache-2.0
#include "onednn_library.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <utility>

#include "backends/cpu/threads/fork_lock.hpp"

namespace sg::cpu {

onednn_library onednn_functions;

namespace {

std::atomic<bool> onednn_is_loaded{false};

template <class Function>
bool find_in_onednn(void *library, const char *name, Function &out) noexcept {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

bool find_onednn_functions(void *library) noexcept {
  find_in_onednn(library, "omp_set_num_threads", onednn_functions.set_num_threads);
  find_in_onednn(library, "omp_get_max_threads", onednn_functions.get_max_threads);
#define SG_ONEDNN_FIND(NAME) find_in_onednn(library, "dnnl_" #NAME, onednn_functions.NAME) &&
  return SG_ONEDNN_FUNCTIONS(SG_ONEDNN_FIND) true;
#undef SG_ONEDNN_FIND
}

}  // namespace

void load_onednn() noexcept {
  const std::lock_guard lock(fork_lock());  // so that a child does not get a half-loaded library
  static bool was_tried = false;            // the first device chooses the kernels of all
  if (std::exchange(was_tried, true)) return;
  char with_minor[32], with_major[32];  // some distributions name it by its minor version, too
  std::snprintf(with_minor, sizeof with_minor, "libdnnl.so.%d.%d", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR);
  std::snprintf(with_major, sizeof with_major, "libdnnl.so.%d", DNNL_VERSION_MAJOR);
  // The major version first, as a linker does: another minor version that the process has is the same library.
  for (const char *name : {with_major, with_minor}) {
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    // Never closed: its OpenMP runtime's threads remain.
    if (library != nullptr && find_onednn_functions(library)) return onednn_is_loaded.store(true);
  }
}

bool has_onednn() noexcept { return onednn_is_loaded.load(std::memory_order_acquire); }

}  // namespace sg::cpu
