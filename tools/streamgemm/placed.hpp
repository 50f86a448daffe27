// SPDX-License-Identifier: Apache-2.0
// Memory of one kind for an operand, with numbers in it.
#pragma once

#include <cstdint>

#include "library.hpp"

namespace sg::cli {

class placed_memory {
 public:
  // `kind`: pageable, pinned or device. Throws failure.
  placed_memory(sg_context *context, sg_memory_kind kind, std::uint64_t bytes, sg_dtype dtype);
  ~placed_memory();
  placed_memory(const placed_memory &) = delete;
  placed_memory &operator=(const placed_memory &) = delete;
  char *data() const { return data_; }

 private:
  sg_context *context_;
  sg_memory_kind kind_;
  buffer_handle buffer_;
  char *data_ = nullptr;
};

// Numbers for which no sum of products overflows, in a pattern that no chip can exploit.
void fill_numbers(char *memory, std::uint64_t bytes, sg_dtype dtype);

}  // namespace sg::cli
