// SPDX-License-Identifier: Apache-2.0
// The pooling of images, or its gradient. A column of a view is an image, without gaps.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"
#include "ops/windows.hpp"

namespace sg {

struct operation;

namespace ops {

struct pool : windows {
  enum : std::size_t { result, x, dy };  // dy: of a gradient; x: not of an average's gradient
  sg_pooling pooling = SG_POOLING_MAX;
  bool operator==(const pool &) const = default;
  static const operation entry;

  std::int64_t pooled() const noexcept { return channels * positions_of_image(); }  // elements of an image of Y
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_pool> : kind_constant<SG_BACKEND_POOL> {};

}  // namespace sg
