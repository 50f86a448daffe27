// SPDX-License-Identifier: Apache-2.0
// Memory for an operand of a test: the device's, with SG_TEST_OPERANDS=pageable pageable memory, and with
// SG_TEST_OPERANDS=drawn that, pinned memory or the device's.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "support/guarded.hpp"
#include "support/harness.hpp"
#include "support/numbers.hpp"

namespace sg_test {

class operand_memory {
 public:
  operand_memory() = default;
  operand_memory(sg_context *on, std::size_t bytes) {
    bytes = std::max<std::size_t>(1, bytes);
    switch (drawn_place()) {
      case place::device:
        EXPECT_OK(sg_buffer_create(on, bytes, nullptr, device_.out()));
        EXPECT_OK(sg_buffer_data(device_, &data_));
        break;
      case place::pinned:
        EXPECT_OK(sg_host_alloc(on, bytes, &data_));
        pinned_for_ = on;
        break;
      case place::pageable:
        pageable_ = guarded((bytes + 15) / 16 * 16);  // aligned as malloc's
        data_ = pageable_.data();
    }
  }
  operand_memory(operand_memory &&other) noexcept { *this = std::move(other); }
  operand_memory &operator=(operand_memory &&other) noexcept {
    std::swap(device_, other.device_), std::swap(pageable_, other.pageable_);
    std::swap(pinned_for_, other.pinned_for_), std::swap(data_, other.data_);
    return *this;
  }
  ~operand_memory() {
    if (pinned_for_) {
      EXPECT_OK(sg_host_free(pinned_for_, data_));
    }
  }
  void *data() const noexcept { return data_; }

 private:
  enum class place { device, pinned, pageable };
  static place drawn_place() {
    static random_source source(7);
    const char *how = std::getenv("SG_TEST_OPERANDS");
    if (!how) return place::device;
    return std::strcmp(how, "drawn") == 0 ? static_cast<place>(source.below(3)) : place::pageable;
  }

  buffer device_;
  guarded pageable_;
  sg_context *pinned_for_ = nullptr;
  void *data_ = nullptr;
};

}  // namespace sg_test
