// SPDX-License-Identifier: Apache-2.0
#include "operations.hpp"

#include <type_traits>

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

// The file of an operation has work_of().
#define SG_WORK(NAME, KIND, TITLE) std::function<void()> work_of(const address_space &, const sg_backend_##NAME &what);
SG_BACKEND_COMMANDS(SG_WORK)
#undef SG_WORK

namespace {

// The stream has functions of its own for these; convolutions and gradients of attention are other commands.
template <class Command>
constexpr bool is_elsewhere = std::is_same_v<Command, sg_backend_copy> || std::is_same_v<Command, sg_backend_gemm> ||
                              std::is_same_v<Command, sg_backend_reduce> || std::is_same_v<Command, sg_backend_conv> ||
                              std::is_same_v<Command, sg_backend_attention_backward>;

template <class Command>
constexpr operation entry(sg_backend_command_kind kind) noexcept {
  if constexpr (is_elsewhere<Command>)
    return {};
  else
    return {
        kind, sizeof(Command), [](const sg_backend_command &what) noexcept { return is_supported(as<Command>(what)); },
        [](const address_space &memory, const sg_backend_command &what) { return work_of(memory, as<Command>(what)); }};
}

constexpr operation entries[] = {
#define SG_ENTRY(NAME, KIND, TITLE) entry<sg_backend_##NAME>(SG_BACKEND_##KIND),
    SG_BACKEND_COMMANDS(SG_ENTRY)
#undef SG_ENTRY
};
constexpr operation_table operations(entries);

}  // namespace

const operation *operation_of(sg_backend_command_kind kind) noexcept { return operations.find(kind); }

}  // namespace sg::sim
