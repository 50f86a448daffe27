// SPDX-License-Identifier: Apache-2.0
// Copies between host and device memory, and within each.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/view.hpp"

namespace sg {

struct binding;
struct command;
struct device_model;
struct operation;

namespace ops {

// to = from: equal numbers of elements of the same type.
struct copy_in {  // host, staging or peer memory to device memory
  enum : std::size_t { to, from };
  static const operation entry;
};
struct copy_out {  // device memory to host, staging or peer memory
  enum : std::size_t { to, from };
  static const operation entry;
};
struct copy_peer {  // another device's memory to the memory of the lane's device
  enum : std::size_t { to, from };
  static const operation entry;
};
struct copy {  // device memory to device memory, or host memory to host memory
  enum : std::size_t { to, from };
  static const operation entry;
};

}  // namespace ops

// Whether the command is one of these.
bool is_copy(const command &c) noexcept;
// The views of a copy, a pack or an unpack.
const accessed_view &destination_of(const command &move) noexcept;
const accessed_view &source_of(const command &move) noexcept;
// The defect of a command as a copy between two views; nullptr: none.
const char *defect_of_move(const buffer_list &buffers, const command &c);
std::string describe_move(const buffer_list &buffers, const command &c, const view &host);

// `height` rows of `width` bytes. A pitch equal to the width on both sides makes them one run.
struct copy_shape {
  std::int64_t width = 0, height = 1;
  std::int64_t dst_pitch = 0, src_pitch = 0;
  bool to_device = true;
  bool between_devices = false;
};
copy_shape shape_of_copy(const buffer_list &buffers, const command &c);
double bytes_of_copy(const buffer_list &buffers, const command &c);
// Bytes over the links to the host, and between devices.
struct bytes_moved {
  double in = 0, out = 0, peer = 0;
};
bytes_moved bytes_moved_by(const buffer_list &buffers, const command &c);  // 0: it is no copy of a device's engine
// Whether it copies, over the link, what host workers pack or unpack.
bool copies_slot(const buffer_list &buffers, const command &c);

// Bytes per second of a copy.
double copy_rate(const device_model &model, const copy_shape &copy, bool both_ways);
// Seconds on its engine, including the gap to the next queued copy.
double copy_seconds(const device_model &model, const copy_shape &copy, bool both_ways);

// The backend's name of a memory space.
sg_backend_space backend_space_of(memory_space space) noexcept;

// The 2-D copies of a copy, pack or unpack: one, or one for each item.
void lower_copy(const buffer_list &buffers, const command &c, const binding &where, std::vector<sg_backend_copy> &out);

}  // namespace sg
