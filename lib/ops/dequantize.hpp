// SPDX-License-Identifier: Apache-2.0
// Quantized values times the scales of their blocks. The views are those of row-major matrices: a column is a row of
// the caller's.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "ops/backend_commands.hpp"
#include "ops/view.hpp"

namespace sg {

struct operation;

namespace ops {

struct dequantize {
  enum : std::size_t { y, x, scales, zero_points };
  sg_quantization quantization = SG_QUANTIZATION_I8;
  std::int64_t block_size = 2;
  bool operator==(const dequantize &) const = default;
  static const operation entry;

  std::int64_t values_in_byte() const noexcept { return quantization == SG_QUANTIZATION_I4 ? 2 : 1; }
};

}  // namespace ops

template <>
struct backend_kind<sg_backend_dequantize> : kind_constant<SG_BACKEND_DEQUANTIZE> {};

}  // namespace sg
