// SPDX-License-Identifier: Apache-2.0
#include "operations.hpp"

#include <type_traits>

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

// The file of an operation has run_NAME; it returns SG_STATUS_CANCELLED if the workspace is stopped.
#define SG_RUN(NAME, KIND, TITLE) sg_status run_##NAME(const sg_backend_##NAME &what, workspace &space) noexcept;
SG_BACKEND_COMMANDS(SG_RUN)
#undef SG_RUN

sg_status run_copy(const sg_backend_copy &what, workspace &) noexcept {
  run_copy(what);
  return SG_STATUS_OK;
}

sg_status run_gemm(const sg_backend_gemm &what, workspace &space) noexcept { return run_gemm(what, nullptr, space); }

sg_status run_custom(const sg_backend_custom &what, workspace &) noexcept {
  return what.run(what.what, nullptr, what.operands, what.operand_count, failure_text());
}

namespace {

template <class Command>
bool has(const Command &what) noexcept {
  return is_supported(what);
}
// The libraries and the processor decide.
bool has(const sg_backend_gemm &what) noexcept { return !!route_for(what.in_type, what.out_type).panels; }
#ifdef SG_CPU_ONEDNN
bool has(const sg_backend_conv &what) noexcept { return has_conv(what); }
#endif

// Commands that the cpu does not have: others are planned in their place.
template <class Command>
constexpr bool is_absent =
    std::is_same_v<Command, sg_backend_attention> || std::is_same_v<Command, sg_backend_attention_backward>;
#ifndef SG_CPU_ONEDNN
template <>
constexpr bool is_absent<sg_backend_conv> = true;
#endif

// `run` calls the function of the command.
template <class Command, class Run>
constexpr operation entry(sg_backend_command_kind kind, Run) noexcept {
  if constexpr (is_absent<Command>)
    return {};
  else
    return {kind, sizeof(Command), [](const sg_backend_command &what) noexcept { return has(as<Command>(what)); },
            [](const sg_backend_command &what, workspace &space) noexcept { return Run()(as<Command>(what), space); }};
}

constexpr operation entries[] = {
    entry<sg_backend_command>(SG_BACKEND_MARKER, [](const auto &, workspace &) noexcept { return SG_STATUS_OK; }),
#define SG_ENTRY(NAME, KIND, TITLE)           \
  entry<sg_backend_##NAME>(SG_BACKEND_##KIND, \
                           [](const auto &what, workspace &space) noexcept { return run_##NAME(what, space); }),
    SG_BACKEND_COMMANDS(SG_ENTRY)
#undef SG_ENTRY
};
constexpr operation_table operations(entries);
static_assert(operations.largest_command() <= most_command_bytes);

}  // namespace

const operation *operation_of(sg_backend_command_kind kind) noexcept { return operations.find(kind); }

}  // namespace sg::cpu
