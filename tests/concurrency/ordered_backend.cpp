// SPDX-License-Identifier: Apache-2.0
// The cpu backend as a plugin that claims memory of its own, so that streams and events order what the core would
// otherwise order itself, as on a GPU: jobs follow each other on the "device", on real threads that ThreadSanitizer sees.
#include "backends/cpu/cpu_backend.hpp"

namespace {

sg_memory_kind device_memory(sg_backend_device *, const void *, uint64_t) { return SG_MEMORY_DEVICE; }

void poll(sg_backend_device *) {}

}  // namespace

extern "C" __attribute__((visibility("default"))) const sg_backend_ops *sg_backend_entry_1(void) {
  static const sg_backend_ops table = [] {
    sg_backend_ops own = *sg_cpu_backend();
    own.name = "ordered";
    own.memory_kind = device_memory;
    own.poll = poll;
    return own;
  }();
  return &table;
}
