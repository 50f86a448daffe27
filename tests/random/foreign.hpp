// SPDX-License-Identifier: Apache-2.0
// Device memory of another context, which every call refuses.
#pragma once

#include <streamgemm/streamgemm.h>

#include <cstring>

#include "support/owned.hpp"

namespace sg_test {

class foreign_memory {
 public:
  static constexpr std::size_t bytes = std::size_t(5) << 20;  // more than any operand has

  // At the first call; nullptr if there is none.
  void *data() {
    if (data_) return data_;
    sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
    options.device = "sim:h200";
    if (sg_context_create(&options, other_.out()) != SG_STATUS_OK) return nullptr;
    if (sg_buffer_create(other_, bytes, nullptr, memory_.out()) != SG_STATUS_OK) return nullptr;
    sg_buffer_data(memory_, &data_);
    return data_;
  }
  static bool is_refusal(sg_status status) {
    return status == SG_STATUS_INVALID_ARGUMENT && std::strstr(sg_last_error_message(), "of another context");
  }

 private:
  context other_;
  buffer memory_;
  void *data_ = nullptr;
};

}  // namespace sg_test
