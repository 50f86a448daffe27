// SPDX-License-Identifier: Apache-2.0
#include "operations.hpp"

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

sg_status run_marker(const sg_backend_command &, workspace &) noexcept { return SG_STATUS_OK; }

sg_status copy(const sg_backend_copy &what, workspace &) noexcept {
  run_copy(what);
  return SG_STATUS_OK;
}

sg_status gemm(const sg_backend_gemm &what, workspace &space) noexcept { return run_gemm(what, nullptr, space); }

sg_status custom(const sg_backend_custom &what, workspace &) noexcept {
  return what.run(what.what, nullptr, what.operands, what.operand_count, failure_text());
}

template <class Command>
Command command_of(sg_status (*run)(const Command &what, workspace &space) noexcept) noexcept;

// The operation of a function that computes its command.
template <auto run>
constexpr operation computed_by(sg_backend_command_kind kind) noexcept {
  using command = decltype(command_of(run));
  return {kind, sizeof(command), is_supported_as<command>,
          [](const sg_backend_command &what, workspace &space) noexcept { return run(as<command>(what), space); }};
}

// The libraries and the processor decide.
constexpr operation gemms() noexcept {
  operation own = computed_by<gemm>(SG_BACKEND_GEMM);
  own.supports = [](const sg_backend_command &what) noexcept {
    const auto &wanted = as<sg_backend_gemm>(what);
    return !!route_for(wanted.in_type, wanted.out_type).panels;
  };
  return own;
}

#ifdef SG_CPU_ONEDNN
constexpr operation convolutions() noexcept {
  operation own = computed_by<run_conv>(SG_BACKEND_CONV);
  own.supports = [](const sg_backend_command &what) noexcept { return has_conv(as<sg_backend_conv>(what)); };
  return own;
}
#endif

// An attention is GEMMs and a softmax.
constexpr operation entries[] = {
    computed_by<run_marker>(SG_BACKEND_MARKER),
    computed_by<copy>(SG_BACKEND_COPY),
    gemms(),
    computed_by<run_reduce>(SG_BACKEND_REDUCE),
    computed_by<run_axpby>(SG_BACKEND_AXPBY),
    computed_by<run_elementwise>(SG_BACKEND_ELEMENTWISE),
    computed_by<run_softmax>(SG_BACKEND_SOFTMAX),
    computed_by<run_norm>(SG_BACKEND_NORM),
    computed_by<run_dequantize>(SG_BACKEND_DEQUANTIZE),
    computed_by<run_rotary>(SG_BACKEND_ROTARY),
    computed_by<run_convert>(SG_BACKEND_CONVERT),
    computed_by<run_gather>(SG_BACKEND_GATHER),
    computed_by<run_im2col>(SG_BACKEND_IM2COL),
    computed_by<run_col2im>(SG_BACKEND_COL2IM),
#ifdef SG_CPU_ONEDNN
    convolutions(),
#endif
    computed_by<run_cell>(SG_BACKEND_CELL),
    computed_by<run_cell_backward>(SG_BACKEND_CELL_BACKWARD),
    computed_by<run_softmax_backward>(SG_BACKEND_SOFTMAX_BACKWARD),
    computed_by<custom>(SG_BACKEND_CUSTOM),
};
constexpr operation_table operations(entries);
static_assert(operations.largest_command() <= most_command_bytes);

}  // namespace

const operation *operation_of(sg_backend_command_kind kind) noexcept { return operations.find(kind); }

}  // namespace sg::cpu
