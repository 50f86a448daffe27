// SPDX-License-Identifier: Apache-2.0
// Copies between pageable memory and staging (pinned) memory, by host workers.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ops/view.hpp"

namespace sg {

struct binding;
struct command;
struct device_model;
struct operation;
struct staging_rate;

namespace ops {

// Of a triangle, only the rows from the diagonal on, or up to it, are copied, column by column. The diagonal meets the
// first column of the views in row `diagonal`, which may be outside of them.
struct staging {
  stored_part accessed = stored_part::all;
  std::int64_t diagonal = 0;
};
struct pack : staging {  // host memory to staging memory; f32 may become bf16
  enum : std::size_t { to, from };
  static const operation entry;
};
struct unpack : staging {  // staging memory to host memory
  enum : std::size_t { to, from };
  static const operation entry;
};

}  // namespace ops

// Workers that are busy.
struct staging_load {
  int packing = 0, unpacking = 0;
  int workers() const noexcept { return packing + unpacking; }
  void operator+=(const staging_load &more) noexcept { packing += more.packing, unpacking += more.unpacking; }
};
staging_load load_of(const command &staging) noexcept;  // of one worker

// Bytes per second of all of them together, or of one if there are none: by rates, of which there is one, and of a
// device.
double staging_rate_of(std::span<const staging_rate> rates, staging_load busy);
double staging_rate_of(const device_model &model, staging_load busy);

// A pack that rounds f32 to bf16: `columns` runs of `count` floats, `pitch` bytes apart, to one run.
struct downcast {
  std::uint16_t *to = nullptr;
  const char *from = nullptr;
  std::int64_t count = 0, columns = 0, pitch = 0;
};
// Empty for every other pack or unpack, which is a copy.
std::optional<downcast> lower_downcast(const buffer_list &buffers, const command &c, const binding &where);
// The runs of a pack or unpack that is a copy.
void lower_staging(const buffer_list &buffers, const command &c, const binding &where,
                   std::vector<sg_backend_copy> &out);

}  // namespace sg
