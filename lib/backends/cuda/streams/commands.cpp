// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/streams/commands.hpp"

#include <cstdio>

#include "backends/common/operation.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/kernels/axpby.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/kernels/layers.hpp"
#include "backends/cuda/memory/copy.hpp"

namespace sg::cuda {
namespace {

// Enqueues the command.
using operation = operation_entry<sg_status(call_resources &in, const sg_backend_command &what) noexcept>;

sg_status run_marker(call_resources &, const sg_backend_command &) noexcept { return SG_STATUS_OK; }
sg_status copy(call_resources &in, const sg_backend_copy &what) noexcept { return run_copy(in, what); }
sg_status gemm(call_resources &in, const sg_backend_gemm &what) noexcept { return run_gemm(in, what); }
sg_status conv(call_resources &in, const sg_backend_conv &what) noexcept { return run_conv(in, in.conv, what); }
sg_status custom(call_resources &in, const sg_backend_custom &what) noexcept {
  return what.run(what.what, in.native(), what.operands, what.operand_count, failure_text());
}

sg_status check_launch(const call_resources &in, sg_backend_command_kind kind, cudaError_t error) noexcept {
  if (error == cudaSuccess) return SG_STATUS_OK;
  char doing[64];
  std::snprintf(doing, sizeof doing, "starting %s", name_of(kind));
  return in.owner().check(error, doing);
}

template <class Command>
Command command_of(sg_status (*run)(call_resources &in, const Command &what) noexcept) noexcept;
template <class Command>
Command command_of(cudaError_t (*launch)(const Command &what, cudaStream_t in) noexcept) noexcept;

// The operation of a function that makes calls, or of a kernel.
template <auto run>
constexpr operation run_by(sg_backend_command_kind kind) noexcept {
  using command = decltype(command_of(run));
  return {kind, sizeof(command), is_supported_as<command>,
          [](call_resources &in, const sg_backend_command &what) noexcept { return run(in, as<command>(what)); }};
}
template <auto launch>
constexpr operation launched_by(sg_backend_command_kind kind) noexcept {
  using command = decltype(command_of(launch));
  return {kind, sizeof(command), is_supported_as<command>,
          [](call_resources &in, const sg_backend_command &what) noexcept {
            return check_launch(in, what.kind, launch(as<command>(what), in.native()));
          }};
}

constexpr operation entries[] = {
    run_by<run_marker>(SG_BACKEND_MARKER),
    run_by<copy>(SG_BACKEND_COPY),
    run_by<gemm>(SG_BACKEND_GEMM),
    launched_by<launch_reduce>(SG_BACKEND_REDUCE),
    launched_by<launch_axpby>(SG_BACKEND_AXPBY),
    launched_by<launch_elementwise>(SG_BACKEND_ELEMENTWISE),
    launched_by<launch_softmax>(SG_BACKEND_SOFTMAX),
    launched_by<launch_norm>(SG_BACKEND_NORM),
    launched_by<launch_dequantize>(SG_BACKEND_DEQUANTIZE),
    launched_by<launch_rotary>(SG_BACKEND_ROTARY),
    launched_by<launch_convert>(SG_BACKEND_CONVERT),
    launched_by<launch_gather>(SG_BACKEND_GATHER),
    launched_by<launch_im2col>(SG_BACKEND_IM2COL),
    launched_by<launch_col2im>(SG_BACKEND_COL2IM),
    run_by<conv>(SG_BACKEND_CONV),
    launched_by<launch_attention>(SG_BACKEND_ATTENTION),
    launched_by<launch_cell>(SG_BACKEND_CELL),
    launched_by<launch_cell_backward>(SG_BACKEND_CELL_BACKWARD),
    launched_by<launch_softmax_backward>(SG_BACKEND_SOFTMAX_BACKWARD),
    run_by<custom>(SG_BACKEND_CUSTOM),
};
constexpr operation_table operations(entries);

}  // namespace

bool supports(device &on, const sg_backend_command &what) noexcept {
  const operation *const known = operations.find(what.kind);
  if (known == nullptr || !known->supports(what)) return false;
  switch (what.kind) {
    // The kernel has the instructions of chips from compute capability 8.0 on.
    case SG_BACKEND_ATTENTION: return on.facts().major >= 8;
    case SG_BACKEND_CONV: return supports_conv(on, on.convolutions(), as<sg_backend_conv>(what));
    default: return true;
  }
}

sg_status run_command(call_resources &in, const sg_backend_command &what) noexcept {
  const operation *const known = operations.find(what.kind);
  return known != nullptr ? known->run(in, what)
                          : fail(SG_STATUS_UNSUPPORTED, "cuda has no command of kind %d", int{what.kind});
}

}  // namespace sg::cuda
