// SPDX-License-Identifier: Apache-2.0
// A matrix operand as stored, without its address.
#pragma once

#include <cstdint>

#include "base/dtype.hpp"
#include "base/hash.hpp"
#include "base/memory_space.hpp"
#include "ops/view.hpp"

namespace sg {

// `rows` x `cols`, column major, in every item of the batch.
struct operand {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;           // elements
  std::int64_t item_stride = 0;  // elements from one item of the batch to the next; 0 shares the operand (inputs only)
  sg_dtype type = SG_DTYPE_F32;
  memory_space space;          // never SG_MEMORY_AUTO; on a device with one memory always DEVICE
  bool pointer_array = false;  // items are at separate addresses; item_stride is unused

  bool operator==(const operand &) const = default;
};

inline bool exists(const operand &x) noexcept { return x.rows > 0 && x.cols > 0; }
// Of one item, without gaps.
inline double bytes_of(const operand &x) noexcept { return double(x.rows) * double(x.cols) * double(size_of(x.type)); }
// From the first element of one item to the end of its last; the operand has been checked: no overflow.
inline std::int64_t reach_of(const operand &x) noexcept {
  return exists(x) ? ((x.cols - 1) * x.ld + x.rows) * size_of(x.type) : 0;
}

inline hasher &operator<<(hasher &to, const operand &x) noexcept {
  return to << x.rows << x.cols << x.ld << x.item_stride
            << (std::int64_t{x.type} | std::int64_t{x.pointer_array} << 16 | std::int64_t{x.space.bits()} << 24);
}

}  // namespace sg
