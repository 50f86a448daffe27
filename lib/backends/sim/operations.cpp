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
constexpr operation computed(sg_backend_command_kind kind) noexcept {
  return {
      kind, sizeof(Command), is_supported_as<Command>,
      [](const address_space &memory, const sg_backend_command &what) { return work_of(memory, as<Command>(what)); }};
}

constexpr operation entries[] = {
    computed<sg_backend_axpby>(SG_BACKEND_AXPBY),
    computed<sg_backend_elementwise>(SG_BACKEND_ELEMENTWISE),
    computed<sg_backend_softmax>(SG_BACKEND_SOFTMAX),
    computed<sg_backend_norm>(SG_BACKEND_NORM),
    computed<sg_backend_dequantize>(SG_BACKEND_DEQUANTIZE),
    computed<sg_backend_rotary>(SG_BACKEND_ROTARY),
    computed<sg_backend_convert>(SG_BACKEND_CONVERT),
    computed<sg_backend_gather>(SG_BACKEND_GATHER),
    computed<sg_backend_im2col>(SG_BACKEND_IM2COL),
    computed<sg_backend_col2im>(SG_BACKEND_COL2IM),
    computed<sg_backend_attention>(SG_BACKEND_ATTENTION),
    computed<sg_backend_cell>(SG_BACKEND_CELL),
    computed<sg_backend_cell_backward>(SG_BACKEND_CELL_BACKWARD),
    computed<sg_backend_softmax_backward>(SG_BACKEND_SOFTMAX_BACKWARD),
    computed<sg_backend_custom>(SG_BACKEND_CUSTOM),
};
constexpr operation_table operations(entries);

}  // namespace

const operation *operation_of(sg_backend_command_kind kind) noexcept { return operations.find(kind); }

}  // namespace sg::sim
