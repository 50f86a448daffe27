// SPDX-License-Identifier: Apache-2.0
// Work that several devices do together.
#pragma once

#include <cstddef>
#include <vector>

#include "support/harness.hpp"

namespace sg_test {

// Vectors on three devices, and their sums over two of them: each device waits for copies of the other.
class sums {
 public:
  explicit sums(sg_context *in) : in_(in) {
    for (int device = 0; device < 3; ++device) {
      sg_buffer_options on = SG_BUFFER_OPTIONS_INIT;
      on.device = device;
      EXPECT_OK(sg_buffer_create(in, bytes, &on, buffers_[device].out()));
      EXPECT_OK(sg_buffer_data(buffers_[device], &vectors_[device]));
    }
  }
  void *vector(int device) const { return vectors_[device]; }
  void release(int device) { EXPECT_OK(buffers_[device].reset()); }
  // Releases the vector's buffer and makes another one.
  void renew(int device) {
    release(device);
    sg_buffer_options on = SG_BUFFER_OPTIONS_INIT;
    on.device = device;
    EXPECT_OK(sg_buffer_create(in_, bytes, &on, buffers_[device].out()));
    EXPECT_OK(sg_buffer_data(buffers_[device], &vectors_[device]));
  }
  void fill(int device) { EXPECT_OK(sg_copy(in_, vectors_[device], values(device).data(), bytes, nullptr)); }
  sg_status start(int one, int other, sg_job **out, const sg_submit *submit = nullptr) {
    void *const both[] = {vectors_[one], vectors_[other]};
    sg_all_reduce_desc desc = SG_ALL_REDUCE_DESC_INIT;
    desc.operands = both;
    desc.operand_count = 2;
    desc.elements = count;
    return sg_all_reduce_async(in_, &desc, submit, out);
  }
  void expect_sum(int one, int other) {
    std::vector<float> seen(count), wanted = values(one);
    EXPECT_OK(sg_copy(in_, seen.data(), vectors_[other], bytes, nullptr));
    for (std::size_t i = 0; i < count; ++i) wanted[i] += values(other)[i];
    EXPECT_EQ(wanted, seen);
  }

 private:
  static constexpr std::size_t count = 400000, bytes = count * sizeof(float);
  static const std::vector<float> &values(int device) {
    static const auto all = [] {
      std::vector<std::vector<float>> made(3, std::vector<float>(count));
      for (std::size_t d = 0; d < 3; ++d)
        for (std::size_t i = 0; i < count; ++i) made[d][i] = float((i + 7 * d) % 1000);
      return made;
    }();
    return all[static_cast<std::size_t>(device)];
  }

  sg_context *const in_;
  buffer buffers_[3];
  void *vectors_[3] = {};
};

}  // namespace sg_test
