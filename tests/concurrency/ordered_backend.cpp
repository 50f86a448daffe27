// SPDX-License-Identifier: Apache-2.0
// The cpu backend as a plugin that claims memory of its own, so that streams and events order what the core would
// otherwise order itself, as on a GPU: jobs follow each other on the "device", on real threads that ThreadSanitizer
// sees. A native stream is a stream made by this table.
#include <mutex>
#include <set>

#include "backends/cpu/cpu_backend.hpp"

namespace {

sg_memory_kind device_memory(sg_backend_device *, const void *, uint64_t) { return SG_MEMORY_DEVICE; }

void poll(sg_backend_device *) {}

std::mutex g_lock;
std::multiset<sg_backend_stream *> g_wrapped;

sg_status stream_wrap(sg_backend_device *, void *native, sg_backend_stream **out) {
  const std::lock_guard lock(g_lock);
  *out = static_cast<sg_backend_stream *>(native);
  g_wrapped.insert(*out);
  return SG_STATUS_OK;
}

void stream_destroy(sg_backend_stream *stream) {
  {
    const std::lock_guard lock(g_lock);
    if (const auto wrapper = g_wrapped.find(stream); wrapper != g_wrapped.end()) {
      g_wrapped.erase(wrapper);
      return;
    }
  }
  sg_cpu_backend()->stream_destroy(stream);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const sg_backend_ops *sg_backend_entry_1(void) {
  static const sg_backend_ops table = [] {
    sg_backend_ops own = *sg_cpu_backend();
    own.name = "ordered";
    own.memory_kind = device_memory;
    own.poll = poll;
    own.stream_wrap = stream_wrap;
    own.stream_destroy = stream_destroy;
    return own;
  }();
  return &table;
}
