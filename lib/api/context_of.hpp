// SPDX-License-Identifier: Apache-2.0
// The context behind a handle.
#pragma once

#include "api/entry.hpp"
#include "run/context.hpp"

namespace sg {

inline ref<context> context_of(const sg_context *handle) {
  return object_of<context>(handle, object_type::context, "context");
}

}  // namespace sg
