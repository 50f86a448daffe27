// SPDX-License-Identifier: Apache-2.0
// An operand of an attention.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "support/numbers.hpp"
#include "support/operand_memory.hpp"

namespace sg_test {

// Batches, heads and tokens in any order, with gaps of several times `granule` elements; elements are read and written
// in a copy.
class heads_in_memory {
 public:
  heads_in_memory(sg_context *on, random_source &random, sg_dtype type, std::int64_t batch, std::int64_t heads,
                  std::int64_t tokens, std::int64_t width, std::int64_t granule = 1)
      : on_(on), type_(type) {
    std::array<std::pair<std::int64_t, std::int64_t *>, 3> dimensions = {
        std::pair{batch, &view_.batch_stride}, {heads, &view_.head_stride}, {tokens, &view_.token_stride}};
    for (int i = 2; i > 0; --i) std::swap(dimensions[std::size_t(i)], dimensions[std::size_t(random.below(i + 1))]);
    std::int64_t reach = width;
    for (const auto &[count, stride] : dimensions) {
      reach += random.below(3) == 0 ? granule * random.below(4) : 0;
      *stride = std::max<std::int64_t>(reach, 1);
      reach = *stride * std::max<std::int64_t>(count, 1);
    }
    image_.assign(std::size_t(std::max<std::int64_t>(1, reach) * size()), 0x5a);
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t t = 0; t < tokens; ++t)
          for (std::int64_t d = 0; d < width; ++d) store(type_, address(b, h, t, d), random.real());
    memory_ = operand_memory(on, image_.size());
    view_.data = memory_.data();
    write();
  }
  const sg_heads &view() const { return view_; }
  long double at(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) {
    return load(type_, address(b, h, t, d)).real();
  }
  void set(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d, long double value) {
    store(type_, address(b, h, t, d), value);
  }
  void write() { EXPECT_OK(sg_copy(on_, view_.data, image_.data(), image_.size(), nullptr)); }
  // Reads what the device has now.
  void fetch() { EXPECT_OK(sg_copy(on_, image_.data(), view_.data, image_.size(), nullptr)); }
  const std::vector<unsigned char> &bytes() const { return image_; }
  std::size_t offset(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) {
    return std::size_t(address(b, h, t, d) - image_.data());
  }
  std::int64_t size() const { return static_cast<std::int64_t>(sg_dtype_size(type_)); }

 private:
  unsigned char *address(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) {
    return image_.data() + (b * view_.batch_stride + h * view_.head_stride + t * view_.token_stride + d) * size();
  }

  sg_context *on_;
  sg_dtype type_;
  sg_heads view_ = {};
  operand_memory memory_;
  std::vector<unsigned char> image_;
};

}  // namespace sg_test
