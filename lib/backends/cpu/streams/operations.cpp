// SPDX-License-Identifier: Apache-2.0
#include "operations.hpp"

#include <iterator>

#include "backends/cpu/gemm/gemm.hpp"
#include "backends/cpu/gemm/select.hpp"
#include "backends/cpu/layers/axpby.hpp"
#include "backends/cpu/layers/cell.hpp"
#include "backends/cpu/layers/convert.hpp"
#include "backends/cpu/layers/elementwise.hpp"
#include "backends/cpu/layers/gather.hpp"
#include "backends/cpu/layers/layers.hpp"
#include "backends/cpu/layers/windows.hpp"
#include "backends/cpu/worker/failure.hpp"

namespace sg::cpu {
namespace {

// Downcasts a header to its command struct.
template <class Command>
const Command &as(const sg_backend_command &what) noexcept {
  return reinterpret_cast<const Command &>(what);
}

bool always(const sg_backend_command &) noexcept { return true; }

bool supports_gemm(const sg_backend_command &what) noexcept {
  const auto &wanted = as<sg_backend_gemm>(what);
  return !!route_for(wanted.in_type, wanted.out_type).panels;
}

bool supports_reduce(const sg_backend_command &what) noexcept {
  const auto &wanted = as<sg_backend_reduce>(what);
  const bool narrow_parts = wanted.part_type == SG_DTYPE_F16 || wanted.part_type == SG_DTYPE_BF16;
  return has_axpby(wanted.out_type) && (wanted.parts_count == 0 || !narrow_parts || wanted.out_type == SG_DTYPE_F32);
}

sg_status marker(const sg_backend_command &, workspace &) noexcept { return SG_STATUS_OK; }
sg_status copy(const sg_backend_command &what, workspace &) noexcept {
  run_copy(as<sg_backend_copy>(what));
  return SG_STATUS_OK;
}
sg_status gemm(const sg_backend_command &what, workspace &space) noexcept {
  return run_gemm(as<sg_backend_gemm>(what), nullptr, space);
}
sg_status reduce(const sg_backend_command &what, workspace &space) noexcept {
  return run_reduce(as<sg_backend_reduce>(what), space);
}

bool supports_axpby(const sg_backend_command &what) noexcept { return has_axpby(as<sg_backend_axpby>(what).type); }
sg_status axpby(const sg_backend_command &what, workspace &space) noexcept {
  return run_axpby(as<sg_backend_axpby>(what), space);
}

bool supports_elementwise(const sg_backend_command &what) noexcept {
  return is_layer_type(as<sg_backend_elementwise>(what).type);
}
sg_status elementwise(const sg_backend_command &what, workspace &space) noexcept {
  return run_elementwise(as<sg_backend_elementwise>(what), space);
}
bool supports_softmax(const sg_backend_command &what) noexcept {
  const auto &wanted = as<sg_backend_softmax>(what);
  const bool is_short = wanted.type == SG_DTYPE_F16 || wanted.type == SG_DTYPE_BF16;
  const bool rounds = wanted.x_type == SG_DTYPE_F32 && is_short;
  return is_layer_type(wanted.type) && (wanted.x_type == 0 ? wanted.sums == nullptr : rounds);
}
sg_status softmax(const sg_backend_command &what, workspace &space) noexcept {
  return run_softmax(as<sg_backend_softmax>(what), space);
}
bool supports_norm(const sg_backend_command &what) noexcept { return is_layer_type(as<sg_backend_norm>(what).type); }
sg_status norm(const sg_backend_command &what, workspace &space) noexcept {
  return run_norm(as<sg_backend_norm>(what), space);
}

bool supports_dequantize(const sg_backend_command &what) noexcept {
  return has_dequantize(as<sg_backend_dequantize>(what));
}
sg_status dequantize(const sg_backend_command &what, workspace &space) noexcept {
  return run_dequantize(as<sg_backend_dequantize>(what), space);
}

bool supports_rotary(const sg_backend_command &what) noexcept { return has_rotary(as<sg_backend_rotary>(what)); }
sg_status rotary(const sg_backend_command &what, workspace &space) noexcept {
  return run_rotary(as<sg_backend_rotary>(what), space);
}

bool supports_convert(const sg_backend_command &what) noexcept { return has_convert(as<sg_backend_convert>(what)); }
sg_status convert(const sg_backend_command &what, workspace &space) noexcept {
  return run_convert(as<sg_backend_convert>(what), space);
}

sg_status gather(const sg_backend_command &what, workspace &space) noexcept {
  return run_gather(as<sg_backend_gather>(what), space);
}

template <class Command>
bool supports_cell(const sg_backend_command &what) noexcept {
  return is_layer_type(as<Command>(what).type);
}
sg_status cell(const sg_backend_command &what, workspace &space) noexcept {
  return run_cell(as<sg_backend_cell>(what), space);
}
sg_status cell_backward(const sg_backend_command &what, workspace &space) noexcept {
  return run_cell_backward(as<sg_backend_cell_backward>(what), space);
}

bool supports_softmax_backward(const sg_backend_command &what) noexcept {
  const auto &wanted = as<sg_backend_softmax_backward>(what);
  const bool is_wide = wanted.dy_type == SG_DTYPE_F32 && wanted.type != SG_DTYPE_F64;
  return is_layer_type(wanted.type) && (wanted.dy_type == wanted.type || is_wide);
}
sg_status softmax_backward(const sg_backend_command &what, workspace &space) noexcept {
  return run_softmax_backward(as<sg_backend_softmax_backward>(what), space);
}

bool supports_im2col(const sg_backend_command &what) noexcept { return has_im2col(as<sg_backend_im2col>(what)); }
sg_status im2col(const sg_backend_command &what, workspace &space) noexcept {
  return run_im2col(as<sg_backend_im2col>(what), space);
}
bool supports_col2im(const sg_backend_command &what) noexcept { return has_col2im(as<sg_backend_col2im>(what)); }
sg_status col2im(const sg_backend_command &what, workspace &space) noexcept {
  return run_col2im(as<sg_backend_col2im>(what), space);
}

bool supports_conv(const sg_backend_command &what) noexcept {
#ifdef SG_CPU_ONEDNN
  return has_conv(as<sg_backend_conv>(what));
#else
  static_cast<void>(what);
  return false;
#endif
}
sg_status conv(const sg_backend_command &what, workspace &space) noexcept {
#ifdef SG_CPU_ONEDNN
  return run_conv(as<sg_backend_conv>(what), space);
#else
  static_cast<void>(what), static_cast<void>(space);
  return SG_STATUS_UNSUPPORTED;
#endif
}

sg_status custom(const sg_backend_command &what, workspace &) noexcept {
  const auto &x = as<sg_backend_custom>(what);
  return x.run(x.what, nullptr, x.operands, x.operand_count, failure_text());
}

// By kind.
constexpr operation operations[] = {
    {},
    {sizeof(sg_backend_command), always, marker},
    {sizeof(sg_backend_copy), always, copy},
    {sizeof(sg_backend_gemm), supports_gemm, gemm},
    {sizeof(sg_backend_reduce), supports_reduce, reduce},
    {sizeof(sg_backend_axpby), supports_axpby, axpby},
    {sizeof(sg_backend_elementwise), supports_elementwise, elementwise},
    {sizeof(sg_backend_softmax), supports_softmax, softmax},
    {sizeof(sg_backend_norm), supports_norm, norm},
    {sizeof(sg_backend_dequantize), supports_dequantize, dequantize},
    {sizeof(sg_backend_rotary), supports_rotary, rotary},
    {sizeof(sg_backend_convert), supports_convert, convert},
    {sizeof(sg_backend_gather), always, gather},
    {sizeof(sg_backend_im2col), supports_im2col, im2col},
    {sizeof(sg_backend_col2im), supports_col2im, col2im},
    {sizeof(sg_backend_conv), supports_conv, conv},
    {},  // attention: GEMMs and a softmax
    {sizeof(sg_backend_cell), supports_cell<sg_backend_cell>, cell},
    {sizeof(sg_backend_cell_backward), supports_cell<sg_backend_cell_backward>, cell_backward},
    {sizeof(sg_backend_softmax_backward), supports_softmax_backward, softmax_backward},
    {sizeof(sg_backend_custom), always, custom},
};

constexpr bool fit() noexcept {
  for (const operation &each : operations)
    if (each.size > most_command_bytes) return false;
  return true;
}
static_assert(fit());

}  // namespace

const operation *operation_of(sg_backend_command_kind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(operations) && operations[index].run != nullptr ? &operations[index] : nullptr;
}

}  // namespace sg::cpu
