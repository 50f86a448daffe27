// SPDX-License-Identifier: Apache-2.0
// What a convolution has beside its operands.
#pragma once

#include <cstdint>

#include "ops/windows.hpp"

namespace sg {

struct conv_form {
  ops::windows of;  // of all channels, in groups; positions_are_rows: the images are NCHW
  std::int64_t out_channels = 0;
  bool by_device = false;      // the device has a command for whole images
  std::int64_t workspace = 0;  // limit of the matrices of windows in bytes; 0: by the model

  std::int64_t columns_of_group() const noexcept { return of.columns() / of.groups; }
  std::int64_t outputs_of_group() const noexcept { return out_channels / of.groups; }
  // The matrix of windows is the images themselves.
  bool is_direct() const noexcept {
    return of.taps() == 1 && of.stride_h == 1 && of.stride_w == 1 && of.pad_top == 0 && of.pad_left == 0 &&
           of.out_h == of.height && of.out_w == of.width;
  }
  bool operator==(const conv_form &) const = default;
};

}  // namespace sg
