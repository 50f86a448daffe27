// SPDX-License-Identifier: Apache-2.0
// The context behind a handle, or behind an object.
#pragma once

#include "api/entry.hpp"
#include "run/context.hpp"

namespace sg {

inline ref<context> context_of(const sg_context *handle) {
  return object_of<context>(handle, object_type::context, "context");
}

// Every job_sink is a context.
inline context &context_of(job_sink &sink) noexcept { return static_cast<context &>(sink); }

// Throws unless `device` is an index of the context's devices, or `lowest` below them.
inline void require_device(const context &on, std::int32_t device, std::int32_t lowest, const char *name) {
  const auto count = static_cast<std::int32_t>(on.devices().size());
  if (device < lowest || device >= count)
    throw error(SG_STATUS_INVALID_ARGUMENT, "@%s is %d; the context's devices are 0 to %d%s", name, device, count - 1,
                lowest < 0 ? ", and -1 is any" : "");
}

}  // namespace sg
