// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/streams/commands.hpp"

#include "backends/cuda/conv/convolution.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/kernels/axpby.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/kernels/layers.hpp"
#include "backends/cuda/memory/copy.hpp"

namespace sg::cuda {
namespace {

// Whether elements of that type are their own accumulators.
bool is_accumulated(sg_dtype type) noexcept { return type != SG_DTYPE_I8 && !is_f8(type); }

bool is_layer_type(sg_dtype type) noexcept {
  return type == SG_DTYPE_F64 || type == SG_DTYPE_F32 || type == SG_DTYPE_F16 || type == SG_DTYPE_BF16;
}

bool supports_softmax(const sg_backend_softmax &what) noexcept {
  const bool is_short = what.type == SG_DTYPE_F16 || what.type == SG_DTYPE_BF16;
  const bool rounds = what.x_type == SG_DTYPE_F32 && is_short;
  return is_layer_type(what.type) && (what.x_type == 0 ? what.sums == nullptr : rounds);
}

bool supports_softmax_backward(const sg_backend_softmax_backward &what) noexcept {
  const bool is_wide = what.dy_type == SG_DTYPE_F32 && what.type != SG_DTYPE_F64;
  return is_layer_type(what.type) && (what.dy_type == what.type || is_wide);
}

bool supports_reduce(const sg_backend_reduce &what) noexcept {
  const bool narrow_parts = what.part_type == SG_DTYPE_F16 || what.part_type == SG_DTYPE_BF16;
  return is_accumulated(what.out_type) && (what.parts_count == 0 || !narrow_parts || what.out_type == SG_DTYPE_F32);
}

bool is_short_real(sg_dtype type) noexcept {
  return type == SG_DTYPE_F32 || type == SG_DTYPE_F16 || type == SG_DTYPE_BF16;
}

bool supports_dequantize(const sg_backend_dequantize &what) noexcept {
  const bool known = what.quantization == SG_QUANTIZATION_I8 || what.quantization == SG_QUANTIZATION_I4;
  return known && is_short_real(what.type) && is_short_real(what.scale_type);
}

bool supports_rotary(const sg_backend_rotary &what) noexcept {
  const bool known = what.pairs == SG_ROTARY_HALVES || what.pairs == SG_ROTARY_INTERLEAVED;
  const bool wide = what.table_type == SG_DTYPE_F32 && what.type != SG_DTYPE_F64;
  return known && is_layer_type(what.type) && (what.table_type == what.type || wide);
}

// The kernel has the instructions of chips from compute capability 8.0 on.
bool supports_attention(const device &on, const sg_backend_attention &what) noexcept {
  const auto fits = [](std::int64_t width) { return width > 0 && width <= 128; };
  return on.facts().major >= 8 && (what.type == SG_DTYPE_F16 || what.type == SG_DTYPE_BF16) && fits(what.width) &&
         fits(what.value_width);
}

bool supports_im2col(const sg_backend_im2col &what) noexcept {
  const std::int32_t bytes = what.element_bytes;
  return bytes > 0 && bytes <= 16 && (bytes & (bytes - 1)) == 0;
}

bool supports_col2im(const sg_backend_col2im &what) noexcept {
  const bool is_short = what.type == SG_DTYPE_F16 || what.type == SG_DTYPE_BF16;
  return is_layer_type(what.type) && (what.matrix_type == what.type || (is_short && what.matrix_type == SG_DTYPE_F32));
}

bool supports_gemm(const sg_backend_gemm &what) noexcept {
  if (what.in_type == SG_DTYPE_I8) return what.out_type == SG_DTYPE_I32;
  if (is_f8(what.in_type))
    return what.out_type == SG_DTYPE_F32 || what.out_type == SG_DTYPE_F16 || what.out_type == SG_DTYPE_BF16;
  blas_types types;
  return blas_types_of(what, types);
}

}  // namespace

bool supports(device &on, const sg_backend_command &what) noexcept {
  switch (what.kind) {
    case SG_BACKEND_MARKER:
    case SG_BACKEND_COPY:
    case SG_BACKEND_GATHER:
    case SG_BACKEND_CUSTOM: return true;
    case SG_BACKEND_REDUCE: return supports_reduce(as<sg_backend_reduce>(what));
    case SG_BACKEND_AXPBY: return is_accumulated(as<sg_backend_axpby>(what).type);
    case SG_BACKEND_ELEMENTWISE: return is_layer_type(as<sg_backend_elementwise>(what).type);
    case SG_BACKEND_SOFTMAX: return supports_softmax(as<sg_backend_softmax>(what));
    case SG_BACKEND_NORM: return is_layer_type(as<sg_backend_norm>(what).type);
    case SG_BACKEND_DEQUANTIZE: return supports_dequantize(as<sg_backend_dequantize>(what));
    case SG_BACKEND_ROTARY: return supports_rotary(as<sg_backend_rotary>(what));
    case SG_BACKEND_CONVERT: {
      const auto &wanted = as<sg_backend_convert>(what);
      const bool divides = wanted.divisors == nullptr || (wanted.in_type == SG_DTYPE_F32 && wanted.op == SG_OP_N);
      return is_layer_type(wanted.in_type) && is_layer_type(wanted.out_type) && divides;
    }
    case SG_BACKEND_IM2COL: return supports_im2col(as<sg_backend_im2col>(what));
    case SG_BACKEND_CONV: return supports_conv(on, on.convolutions(), as<sg_backend_conv>(what));
    case SG_BACKEND_COL2IM: return supports_col2im(as<sg_backend_col2im>(what));
    case SG_BACKEND_CELL: return is_layer_type(as<sg_backend_cell>(what).type);
    case SG_BACKEND_CELL_BACKWARD: return is_layer_type(as<sg_backend_cell_backward>(what).type);
    case SG_BACKEND_SOFTMAX_BACKWARD: return supports_softmax_backward(as<sg_backend_softmax_backward>(what));
    case SG_BACKEND_GEMM: return supports_gemm(as<sg_backend_gemm>(what));
    case SG_BACKEND_ATTENTION: return supports_attention(on, as<sg_backend_attention>(what));
  }
  return false;
}

sg_status run_command(call_resources &in, const sg_backend_command &what) noexcept {
  switch (what.kind) {
    case SG_BACKEND_MARKER: return SG_STATUS_OK;
    case SG_BACKEND_COPY: return run_copy(in, as<sg_backend_copy>(what));
    case SG_BACKEND_GEMM: return run_gemm(in, as<sg_backend_gemm>(what));
    case SG_BACKEND_REDUCE:
      return in.owner().check(launch_reduce(as<sg_backend_reduce>(what), in.native()), "starting a reduction");
    case SG_BACKEND_AXPBY:
      return in.owner().check(launch_axpby(as<sg_backend_axpby>(what), in.native()), "starting a scale-and-add");
    case SG_BACKEND_ELEMENTWISE:
      return in.owner().check(launch_elementwise(as<sg_backend_elementwise>(what), in.native()),
                              "starting an elementwise function");
    case SG_BACKEND_SOFTMAX:
      return in.owner().check(launch_softmax(as<sg_backend_softmax>(what), in.native()), "starting a softmax");
    case SG_BACKEND_NORM:
      return in.owner().check(launch_norm(as<sg_backend_norm>(what), in.native()), "starting a norm");
    case SG_BACKEND_DEQUANTIZE:
      return in.owner().check(launch_dequantize(as<sg_backend_dequantize>(what), in.native()),
                              "starting a dequantization");
    case SG_BACKEND_ROTARY:
      return in.owner().check(launch_rotary(as<sg_backend_rotary>(what), in.native()), "starting a rotary embedding");
    case SG_BACKEND_CONVERT:
      return in.owner().check(launch_convert(as<sg_backend_convert>(what), in.native()), "starting a conversion");
    case SG_BACKEND_ATTENTION:
      return in.owner().check(launch_attention(as<sg_backend_attention>(what), in.native()), "starting an attention");
    case SG_BACKEND_GATHER:
      return in.owner().check(launch_gather(as<sg_backend_gather>(what), in.native()), "starting a gather");
    case SG_BACKEND_IM2COL:
      return in.owner().check(launch_im2col(as<sg_backend_im2col>(what), in.native()), "starting an im2col");
    case SG_BACKEND_COL2IM:
      return in.owner().check(launch_col2im(as<sg_backend_col2im>(what), in.native()), "starting a col2im");
    case SG_BACKEND_CONV: return run_conv(in, in.conv, as<sg_backend_conv>(what));
    case SG_BACKEND_CUSTOM: {
      const auto &x = as<sg_backend_custom>(what);
      return x.run(x.what, in.native(), x.operands, x.operand_count, failure_text());
    }
    case SG_BACKEND_CELL:
      return in.owner().check(launch_cell(as<sg_backend_cell>(what), in.native()), "starting a recurrent cell");
    case SG_BACKEND_CELL_BACKWARD:
      return in.owner().check(launch_cell_backward(as<sg_backend_cell_backward>(what), in.native()),
                              "starting the gradients of a recurrent cell");
    case SG_BACKEND_SOFTMAX_BACKWARD:
      return in.owner().check(launch_softmax_backward(as<sg_backend_softmax_backward>(what), in.native()),
                              "starting a softmax's gradient");
  }
  return fail(SG_STATUS_UNSUPPORTED, "cuda has no command of kind %d", int{what.kind});
}

}  // namespace sg::cuda
