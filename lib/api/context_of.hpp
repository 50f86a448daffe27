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

}  // namespace sg
