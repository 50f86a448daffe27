// SPDX-License-Identifier: Apache-2.0
// A matrix of any type and layout in memory for operands, and the copy of it that a test reads and writes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/numbers.hpp"
#include "support/operand_memory.hpp"

namespace sg_test {

// A matrix some elements behind its start, with gaps behind its rows or columns.
class strided_matrix {
 public:
  static constexpr long double unwritten = 77;  // in the gaps, and before a value is set
  struct form {
    sg_layout layout = SG_LAYOUT_ROW_MAJOR;
    std::int64_t gap = 0, offset = 0;
  };
  strided_matrix(sg_context *on, sg_dtype type, std::int64_t rows, std::int64_t cols, const form &how) : on_(on) {
    const bool by_rows = how.layout == SG_LAYOUT_ROW_MAJOR;
    view = {nullptr, rows, cols, std::max<std::int64_t>(1, (by_rows ? cols : rows) + how.gap), type, how.layout};
    const std::int64_t elements = how.offset + view.ld * (by_rows ? rows : cols) + 1, size = sg_dtype_size(type);
    bytes_.resize(std::size_t(elements * size));
    for (std::int64_t i = 0; i < elements; ++i) store(type, &bytes_[std::size_t(i * size)], unwritten);
    offset_ = std::size_t(how.offset * size);
    memory_ = operand_memory(on, bytes_.size());
    view.data = static_cast<std::uint8_t *>(memory_.data()) + offset_;
  }
  long double get(std::int64_t i, std::int64_t j) { return load(view.dtype, at(i, j)).real(); }
  void set(std::int64_t i, std::int64_t j, long double value) { store(view.dtype, at(i, j), value); }
  number get_number(std::int64_t i, std::int64_t j) { return load(view.dtype, at(i, j)); }
  void set_number(std::int64_t i, std::int64_t j, number value) { store(view.dtype, at(i, j), value); }
  const std::vector<std::uint8_t> &bytes() const noexcept { return bytes_; }
  void send() { EXPECT_OK(sg_copy(on_, memory_.data(), bytes_.data(), bytes_.size(), nullptr)); }
  void fetch() { EXPECT_OK(sg_copy(on_, bytes_.data(), memory_.data(), bytes_.size(), nullptr)); }
  // Bytes beside the elements, whose own are replaced.
  std::vector<std::uint8_t> gaps() {
    std::vector<std::uint8_t> kept = bytes_;
    bytes_.swap(kept);
    for (std::int64_t i = 0; i < view.rows; ++i)
      for (std::int64_t j = 0; j < view.cols; ++j) set(i, j, unwritten);
    bytes_.swap(kept);
    return kept;
  }
  sg_matrix view;

 private:
  std::uint8_t *at(std::int64_t i, std::int64_t j) {
    const std::int64_t index = view.layout == SG_LAYOUT_ROW_MAJOR ? i * view.ld + j : i + j * view.ld;
    return &bytes_[offset_ + std::size_t(index * std::int64_t(sg_dtype_size(view.dtype)))];
  }
  sg_context *on_;
  std::vector<std::uint8_t> bytes_;
  std::size_t offset_ = 0;
  operand_memory memory_;
};

}  // namespace sg_test
