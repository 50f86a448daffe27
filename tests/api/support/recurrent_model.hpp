// SPDX-License-Identifier: Apache-2.0
// Operands of recurrent layers.
#pragma once

#include <vector>

#include "../../reference/differences.hpp"
#include "../../reference/recurrent.hpp"
#include "support/numbers.hpp"
#include "support/operand_memory.hpp"

namespace sg_test {

// Values of count x rows x width elements with any strides, read and written in a copy.
class strided_values {
 public:
  strided_values(sg_context *on, sg_dtype type, std::int64_t count, std::int64_t stride, std::int64_t rows,
                 std::int64_t row_stride, std::int64_t width)
      : on_(on), type_(type), counts_{count, rows, width}, strides_{stride, row_stride, 1} {
    const std::int64_t last =
        std::max<std::int64_t>(0, count - 1) * stride + std::max<std::int64_t>(0, rows - 1) * row_stride;
    image_.assign(std::size_t((last + std::max<std::int64_t>(1, width)) * size()), 0x5a);
    memory_ = operand_memory(on, image_.size());
    write();
  }
  void *data() const { return memory_.data(); }
  std::int64_t elements() const { return counts_[0] * counts_[1] * counts_[2]; }
  std::vector<long double> get() {
    std::vector<long double> values;
    each([&](unsigned char *at) { values.push_back(load(type_, at).real()); });
    return values;
  }
  void set(const std::vector<long double> &values) {
    std::size_t next = 0;
    each([&](unsigned char *at) { store(type_, at, values[next++]); });
    write();
  }
  void randomise(random_source &random, double scale) {
    std::vector<long double> values;
    for (std::int64_t i = 0; i < elements(); ++i) values.push_back(scale * random.real());
    set(values);
  }
  // Reads what the device has now; fails if a gap has changed.
  void fetch() {
    std::vector<unsigned char> before = image_;
    EXPECT_OK(sg_copy(on_, image_.data(), memory_.data(), image_.size(), nullptr));
    std::vector<unsigned char> now = image_;
    each([&](unsigned char *at) {
      const std::ptrdiff_t offset = at - image_.data();
      std::copy_n(now.begin() + offset, size(), before.begin() + offset);
    });
    EXPECT_EQ(before, now) << "a gap was written";
  }

 private:
  std::int64_t size() const { return static_cast<std::int64_t>(sg_dtype_size(type_)); }
  void write() { EXPECT_OK(sg_copy(on_, memory_.data(), image_.data(), image_.size(), nullptr)); }
  template <class Body>
  void each(Body &&body) {
    for (std::int64_t i = 0; i < counts_[0]; ++i)
      for (std::int64_t j = 0; j < counts_[1]; ++j)
        for (std::int64_t k = 0; k < counts_[2]; ++k)
          body(image_.data() + (i * strides_[0] + j * strides_[1] + k) * size());
  }

  sg_context *on_;
  sg_dtype type_;
  std::int64_t counts_[3], strides_[3];
  operand_memory memory_;
  std::vector<unsigned char> image_;
};

using sg_reference::difference_gradient;
using sg_reference::recurrent_results;
using sg_reference::recurrent_shape;
using sg_reference::recurrent_values;
using sg_reference::run_recurrent;

}  // namespace sg_test
