// SPDX-License-Identifier: Apache-2.0
// Handles: what the ABI hands out instead of addresses. A handle names a slot of a table, the generation of that slot's
// use, the type of object, and the process that it was made in, so that any other value is recognised as no handle.
//
// The caller's references are counted in the slot; while there is one, the slot keeps one reference to the object.
#pragma once

#include <cstdint>

#include "base/object.hpp"

namespace sg {

using handle_bits = std::uint64_t;

// A handle with one reference of the caller's; it takes over the reference given. Throws std::bad_alloc.
handle_bits make_handle(ref<object> object);

// Adds and gives back a reference of the caller's. False: not a handle of that type.
bool retain_handle(handle_bits handle, object_type type) noexcept;
bool release_handle(handle_bits handle, object_type type) noexcept;

// The object behind a handle, with a reference added; empty when it is not a handle of that type.
ref<object> find_object(handle_bits handle, object_type type) noexcept;

// The object behind a handle, which it keeps until unpin_handle() even if it is released meanwhile; nullptr when it is
// not a handle of that type. Cheaper than a reference.
object *pin_handle(handle_bits handle, object_type type) noexcept;
void unpin_handle(handle_bits handle) noexcept;

// Makes every handle that exists invalid. Called in the child after a fork.
void invalidate_all_handles() noexcept;

}  // namespace sg
