// SPDX-License-Identifier: Apache-2.0
// What a convolution has beside the operands of its problems. Part of a plan request.
#pragma once

#include <cstdint>
#include <memory>

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

// Compares forms, not addresses.
class shared_conv_form {
 public:
  shared_conv_form() = default;
  explicit shared_conv_form(const conv_form &form) : form_(std::make_shared<const conv_form>(form)) {}

  explicit operator bool() const noexcept { return form_ != nullptr; }
  const conv_form &operator*() const noexcept { return *form_; }
  const conv_form *operator->() const noexcept { return form_.get(); }
  bool operator==(const shared_conv_form &other) const noexcept {
    return form_ == other.form_ || (form_ && other.form_ && *form_ == *other.form_);
  }

 private:
  std::shared_ptr<const conv_form> form_;
};

}  // namespace sg
