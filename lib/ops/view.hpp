// SPDX-License-Identifier: Apache-2.0
// Buffers, views of them, and the mode of each access.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.hpp"
#include "base/memory_space.hpp"

namespace sg {

// A buffer of a schedule. The first ones are its parameters: operands, bound when the schedule is run; one that the
// operation does not have is empty. The others are the schedule's own, at an offset in one device arena or in one
// staging (pinned) arena.
enum class buffer_kind : std::uint8_t { parameter, device, staging };

struct buffer {
  buffer_kind kind = buffer_kind::parameter;
  sg_dtype type = SG_DTYPE_F32;
  bool pointer_array = false;    // parameter: item i is at the i-th bound pointer
  memory_space space;            // device and staging: of which device; parameter: the operand's
  std::int64_t item_stride = 0;  // bytes from item to item
  std::int64_t offset = 0;       // device and staging: bytes into the arena, a multiple of 256
  std::int64_t bytes = 0;  // size; parameter: from the first element to the end of the last (pointers: of each item)
  std::int32_t parameter = -1;  // its index in the binding; -1: none
  const char *name = "";        // of a parameter, for descriptions: a literal
};
using buffer_list = std::vector<buffer>;

// Part of a buffer: `items` items from `item`, in each the rows x cols elements at `offset` bytes, column major with
// leading dimension `ld`. An operand that all items share has one item; so has every view that is copied, packed or
// reduced into.
struct view {
  std::int32_t buffer = -1;  // negative: the command has no such view
  std::int64_t item = 0;
  std::int64_t items = 1;
  std::int64_t offset = 0;
  std::int64_t ld = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  bool exists() const noexcept { return buffer >= 0; }
};

inline const buffer &buffer_of(const buffer_list &buffers, const view &v) {
  return buffers[static_cast<std::size_t>(v.buffer)];
}
inline sg_dtype type_of(const buffer_list &buffers, const view &v) { return buffer_of(buffers, v).type; }

// Which elements of a square matrix as stored are accessed; the triangles have the diagonal.
enum class stored_part : std::uint8_t { all, lower, upper };

enum class access_mode : std::uint8_t { none, read, write, read_write };
constexpr bool reads(access_mode mode) noexcept { return mode == access_mode::read || mode == access_mode::read_write; }
constexpr bool writes(access_mode mode) noexcept {
  return mode == access_mode::write || mode == access_mode::read_write;
}

// A view of a command with its access mode.
struct accessed_view : view {
  access_mode mode = access_mode::none;

  accessed_view &operator=(const view &of) noexcept {
    view::operator=(of);
    return *this;
  }
};

// A scalar of a command: the job's own (of the command's group), its conjugate, or a constant.
enum class scalar_role : std::uint8_t { zero, one, job, minus_one, conjugate };

}  // namespace sg
