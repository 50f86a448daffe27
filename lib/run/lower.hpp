// SPDX-License-Identifier: Apache-2.0
// Turns a schedule's commands into a backend's, with the addresses and scalars of one run.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/schedule.hpp"
#include "run/binding.hpp"

namespace sg {

// Room for the pointer arrays of one command; read by the backend during the call only.
struct pointer_scratch {
  std::vector<void *> a, b, c;
};

// Address of the first element of item `item` of a view.
char *address_of(const schedule &s, const view &v, const binding &where, std::int64_t item);

sg_backend_gemm lower_gemm(const schedule &s, const command &c, const binding &where, pointer_scratch &scratch);
// A reduction of parts, or the scaling of each item.
void lower_reduce(const schedule &s, const command &c, const binding &where, std::vector<sg_backend_reduce> &out);

// A pack that rounds f32 to bf16: `columns` runs of `count` floats, `pitch` bytes apart, to one run.
struct narrowing {
  std::uint16_t *to = nullptr;
  const char *from = nullptr;
  std::int64_t count = 0, columns = 0, pitch = 0;
};
// Nothing for every other pack or unpack: it is a copy.
std::optional<narrowing> lower_narrowing(const schedule &s, const command &c, const binding &where);

// The 2-D copies that a copy_in, copy_out, pack or unpack command consists of: one, or one for each item.
void lower_copy(const schedule &s, const command &c, const binding &where, std::vector<sg_backend_copy> &out);

}  // namespace sg
