// SPDX-License-Identifier: Apache-2.0
// A convolution, or its gradients.
#pragma once

#include <array>
#include <cstdint>

#include "ops/windows.hpp"
#include "plan/schedule/operand.hpp"

namespace sg {

// The parameters; y: of the gradients, dY. Images have a column for each image, filters one for each output channel, as
// stored; a bias is a column.
enum class conv_parameter : std::uint8_t { x, w, bias, y, dx, dw, dbias };
inline constexpr std::size_t conv_parameters = 7;

struct conv_form {
  ops::windows of;  // of all channels, in groups; positions_are_rows: the images are NCHW
  std::int64_t out_channels = 0;
  bool by_device = false;                         // the device has a command for whole images, of Y or dX
  bool dw_by_device = false;                      // likewise of dW
  std::int64_t workspace = 0;                     // limit of the matrices of windows in bytes; 0: by the model
  std::array<operand, conv_parameters> operands;  // a missing one has no elements
  sg_compute compute = SG_COMPUTE_EXACT;
  sg_activation activation = SG_ACTIVATION_NONE;
  bool is_backward = false;
  bool accumulates = false;  // dW and the bias's gradient are added

  const operand &at(conv_parameter which) const noexcept { return operands[std::size_t(which)]; }
  operand &at(conv_parameter which) noexcept { return operands[std::size_t(which)]; }
  sg_dtype type() const noexcept { return at(conv_parameter::y).type; }

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
