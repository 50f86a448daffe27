// SPDX-License-Identifier: Apache-2.0
#include "operations.hpp"

#include "attention.hpp"
#include "axpby.hpp"
#include "cell.hpp"
#include "convert.hpp"
#include "custom.hpp"
#include "gather.hpp"
#include "layers.hpp"
#include "rotary.hpp"
#include "windows.hpp"

namespace sg::sim {
namespace {

template <class Command>
const Command &command_as(const sg_backend_command &command) noexcept {
  return reinterpret_cast<const Command &>(command);
}

template <class Command>
std::function<void()> work_as(const address_space &memory, const sg_backend_command &command) {
  return work_of(memory, command_as<Command>(command));
}

bool always(const sg_backend_command &) noexcept { return true; }

template <class Command>
bool supports_layer(const sg_backend_command &command) noexcept {
  return is_layer_type(command_as<Command>(command).type);
}

bool supports_softmax(const sg_backend_command &command) noexcept {
  return has_softmax(command_as<sg_backend_softmax>(command));
}

bool supports_softmax_backward(const sg_backend_command &command) noexcept {
  return has_softmax_backward(command_as<sg_backend_softmax_backward>(command));
}

bool supports_axpby(const sg_backend_command &command) noexcept {
  return has_axpby(command_as<sg_backend_axpby>(command).type);
}

bool supports_attention(const sg_backend_command &command) noexcept {
  return has_attention(command_as<sg_backend_attention>(command));
}

bool supports_dequantize(const sg_backend_command &command) noexcept {
  return has_dequantize(command_as<sg_backend_dequantize>(command));
}

bool supports_rotary(const sg_backend_command &command) noexcept {
  return has_rotary(command_as<sg_backend_rotary>(command));
}

bool supports_convert(const sg_backend_command &command) noexcept {
  return has_convert(command_as<sg_backend_convert>(command));
}

bool supports_im2col(const sg_backend_command &command) noexcept {
  const std::int32_t bytes = command_as<sg_backend_im2col>(command).element_bytes;
  return bytes > 0 && bytes <= 16 && (bytes & (bytes - 1)) == 0;
}

bool supports_col2im(const sg_backend_command &command) noexcept {
  return has_col2im(command_as<sg_backend_col2im>(command));
}

}  // namespace

const operation *operation_of(sg_backend_command_kind kind) noexcept {
  static constexpr operation axpby{"scale-and-add", supports_axpby, work_as<sg_backend_axpby>};
  static constexpr operation elementwise{"elementwise function", supports_layer<sg_backend_elementwise>,
                                         work_as<sg_backend_elementwise>};
  static constexpr operation softmax{"softmax", supports_softmax, work_as<sg_backend_softmax>};
  static constexpr operation norm{"norm", supports_layer<sg_backend_norm>, work_as<sg_backend_norm>};
  static constexpr operation dequantize{"dequantization", supports_dequantize, work_as<sg_backend_dequantize>};
  static constexpr operation rotary{"rotary embedding", supports_rotary, work_as<sg_backend_rotary>};
  static constexpr operation convert{"conversion", supports_convert, work_as<sg_backend_convert>};
  static constexpr operation gather{"gather", always, work_as<sg_backend_gather>};
  static constexpr operation cell{"recurrent cell", supports_layer<sg_backend_cell>, work_as<sg_backend_cell>};
  static constexpr operation cell_backward{"recurrent cell's gradients", supports_layer<sg_backend_cell_backward>,
                                           work_as<sg_backend_cell_backward>};
  static constexpr operation softmax_backward{"softmax's gradient", supports_softmax_backward,
                                              work_as<sg_backend_softmax_backward>};
  static constexpr operation attention{"attention", supports_attention, work_as<sg_backend_attention>};
  static constexpr operation custom{"custom operation", always, work_as<sg_backend_custom>};
  static constexpr operation im2col{"im2col", supports_im2col, work_as<sg_backend_im2col>};
  static constexpr operation col2im{"col2im", supports_col2im, work_as<sg_backend_col2im>};
  switch (kind) {
    case SG_BACKEND_ATTENTION: return &attention;
    case SG_BACKEND_AXPBY: return &axpby;
    case SG_BACKEND_ELEMENTWISE: return &elementwise;
    case SG_BACKEND_SOFTMAX: return &softmax;
    case SG_BACKEND_NORM: return &norm;
    case SG_BACKEND_DEQUANTIZE: return &dequantize;
    case SG_BACKEND_ROTARY: return &rotary;
    case SG_BACKEND_CONVERT: return &convert;
    case SG_BACKEND_GATHER: return &gather;
    case SG_BACKEND_IM2COL: return &im2col;
    case SG_BACKEND_COL2IM: return &col2im;
    case SG_BACKEND_CUSTOM: return &custom;
    case SG_BACKEND_CELL: return &cell;
    case SG_BACKEND_CELL_BACKWARD: return &cell_backward;
    case SG_BACKEND_SOFTMAX_BACKWARD: return &softmax_backward;
    default: return nullptr;
  }
}

}  // namespace sg::sim
