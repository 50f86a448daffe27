// SPDX-License-Identifier: Apache-2.0
// Commands: from the header to the struct, and their names in messages.
#pragma once

#include <streamgemm/backend.h>

namespace sg {
inline namespace common {

// Downcasts a header to its command struct.
template <class Command>
const Command &as(const sg_backend_command &what) noexcept {
  return reinterpret_cast<const Command &>(what);
}

constexpr const char *name_of(sg_backend_command_kind kind) noexcept {
  switch (kind) {
    case SG_BACKEND_MARKER: return "a marker";
    case SG_BACKEND_COPY: return "a copy";
    case SG_BACKEND_GEMM: return "a GEMM";
    case SG_BACKEND_REDUCE: return "a reduction";
    case SG_BACKEND_AXPBY: return "a scale-and-add";
    case SG_BACKEND_ELEMENTWISE: return "an elementwise function";
    case SG_BACKEND_SOFTMAX: return "a softmax";
    case SG_BACKEND_NORM: return "a norm";
    case SG_BACKEND_DEQUANTIZE: return "a dequantization";
    case SG_BACKEND_ROTARY: return "a rotary embedding";
    case SG_BACKEND_CONVERT: return "a conversion";
    case SG_BACKEND_GATHER: return "a gather";
    case SG_BACKEND_IM2COL: return "an im2col";
    case SG_BACKEND_COL2IM: return "a col2im";
    case SG_BACKEND_CONV: return "a convolution";
    case SG_BACKEND_ATTENTION: return "an attention";
    case SG_BACKEND_CELL: return "a recurrent cell";
    case SG_BACKEND_CELL_BACKWARD: return "the gradients of a recurrent cell";
    case SG_BACKEND_SOFTMAX_BACKWARD: return "a softmax's gradient";
    case SG_BACKEND_CUSTOM: return "a custom operation";
  }
  return "an unknown command";
}

}  // namespace common
}  // namespace sg
