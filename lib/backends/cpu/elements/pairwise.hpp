// SPDX-License-Identifier: Apache-2.0
// Sums of many addends, each an array of `elements` values of an accumulator's type, added pairwise: the error grows
// with the logarithm of their number.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/simd/simd.hpp"
#include "pack.hpp"

namespace sg::cpu {

class pairwise_sums {
 public:
  // Of the memory for a number of addends.
  static std::size_t bytes(std::int64_t addends, sg_dtype type, std::int64_t elements) noexcept {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(addends)) * elements *
                                    element_size(type));
  }

  pairwise_sums(void *memory, sg_dtype type, std::int64_t elements) noexcept
      : memory_(static_cast<char *>(memory)), type_(type), elements_(elements) {}

  // Where the caller stores the next addend, before it calls push().
  void *next() const noexcept { return at(top_); }
  void push() noexcept {
    ++top_;
    for (std::int64_t same = ++count_; same % 2 == 0; same /= 2) merge();
  }
  // Of one addend at least.
  void *total() noexcept {
    while (top_ > 1) merge();
    return memory_;
  }

 private:
  char *at(std::int64_t level) const noexcept { return memory_ + level * elements_ * element_size(type_); }
  void merge() noexcept {
    --top_;
    simd().add(type_, at(top_ - 1), at(top_), elements_);
  }

  char *memory_;
  sg_dtype type_;
  std::int64_t elements_, top_ = 0, count_ = 0;
};

}  // namespace sg::cpu
