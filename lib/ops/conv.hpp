// SPDX-License-Identifier: Apache-2.0
// A convolution of whole images as one command, or one of its gradients, for devices that have it.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/windows.hpp"

namespace sg::ops {

struct conv : windows {
  // Images, images, a column for each filter, one column; memory for the device, one column.
  enum : std::size_t { y, x, w, bias, scratch };
  std::int32_t out_channels = 1;
  sg_activation activation = SG_ACTIVATION_NONE;
  sg_backend_conv_gradient gradient = SG_BACKEND_CONV_OF_Y;
  bool operator==(const conv &) const = default;
  static const operation entry;
};

}  // namespace sg::ops

namespace sg {

template <>
struct backend_kind<sg_backend_conv> : kind_constant<SG_BACKEND_CONV> {};

}  // namespace sg
