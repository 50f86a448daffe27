// SPDX-License-Identifier: Apache-2.0
// Handles, which the ABI uses instead of addresses. A handle encodes a slot of a table, the slot's generation, the type
// of object, and the process that made it, so that any other value is recognised as invalid.
//
// The caller's references are counted in the slot; while there is one, the slot keeps one reference to the object.
#pragma once

#include <cstdint>

#include "base/object.hpp"

namespace sg {

using handle_bits = std::uint64_t;

// A handle with one reference of the caller; takes over the given reference. Throws std::bad_alloc.
handle_bits make_handle(ref<object> object);

// Adds or releases a reference of the caller. False: not a handle of that type.
bool retain_handle(handle_bits handle, object_type type) noexcept;
bool release_handle(handle_bits handle, object_type type) noexcept;

// The object of a handle, with a reference added; empty if it is not a handle of that type.
ref<object> find_object(handle_bits handle, object_type type) noexcept;

// The object of a handle, kept until unpin_handle() even if the handle is released meanwhile; nullptr if it is not a
// handle of that type. Cheaper than a reference.
object *pin_handle(handle_bits handle, object_type type) noexcept;
void unpin_handle(handle_bits handle) noexcept;

// Invalidates all handles. Called in the child after a fork.
void invalidate_all_handles() noexcept;

}  // namespace sg
