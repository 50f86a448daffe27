// SPDX-License-Identifier: Apache-2.0
// Preloaded: oneDNN's first CPU detection is slow, as if behind a lock. A fork meanwhile would leave the child waiting
// for the result for ever.
#include <dlfcn.h>
#include <unistd.h>

namespace {
struct first_look {
  first_look() { usleep(20000); }
};
}  // namespace

extern "C" __attribute__((visibility("default"))) int dnnl_get_effective_cpu_isa() {
  static const first_look once;
  return reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "dnnl_get_effective_cpu_isa"))();
}
