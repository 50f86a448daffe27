// SPDX-License-Identifier: Apache-2.0
// A command: its lane, its dependencies, the views it accesses, and the payload of its operation. The bytes that a
// command accesses follow from its views alone.
#pragma once

#include <array>
#include <cstdint>
#include <variant>

#include "base/device_index.hpp"
#include "ops/attention.hpp"
#include "ops/attention_backward.hpp"
#include "ops/axpby.hpp"
#include "ops/cell.hpp"
#include "ops/cell_backward.hpp"
#include "ops/clamp.hpp"
#include "ops/conv.hpp"
#include "ops/convert.hpp"
#include "ops/copy.hpp"
#include "ops/cross_entropy.hpp"
#include "ops/custom.hpp"
#include "ops/dequantize.hpp"
#include "ops/elementwise.hpp"
#include "ops/fill.hpp"
#include "ops/gather.hpp"
#include "ops/gemm.hpp"
#include "ops/launch.hpp"
#include "ops/norm.hpp"
#include "ops/norm_backward.hpp"
#include "ops/optimizer.hpp"
#include "ops/pool.hpp"
#include "ops/reduce.hpp"
#include "ops/rotary.hpp"
#include "ops/row_dot.hpp"
#include "ops/row_reduce.hpp"
#include "ops/scatter_add.hpp"
#include "ops/score_mask.hpp"
#include "ops/softmax.hpp"
#include "ops/softmax_backward.hpp"
#include "ops/staging.hpp"
#include "ops/symmetric.hpp"
#include "ops/triangular.hpp"
#include "ops/view.hpp"
#include "ops/windows.hpp"

namespace sg {

// Commands of one lane run in schedule order, except for staging and out-of-order copies
// (plan/schedule/out_of_order_copies.hpp); lanes run concurrently.
enum class lane_kind : std::uint8_t {
  copy_in,   // host to device engine
  copy_out,  // device to host engine
  compute,   // compute stream `index`
  // host workers, which pack pageable memory into pinned slots and unpack it: an idle worker takes the first command
  // that can run, so a delayed worker delays no other
  staging,
  copy_peer,  // from another device's memory to this one's
};
inline constexpr int lane_kinds = 5;

struct lane {
  lane_kind kind = lane_kind::compute;
  device_index device{};  // device of the machine; for staging, the device of the staged memory
  std::uint16_t index = 0;

  constexpr lane() noexcept = default;
  constexpr lane(lane_kind of_kind, std::uint16_t at, device_index on = first_device) noexcept
      : kind(of_kind), device(on), index(at) {}
  bool operator==(const lane &) const = default;
};
static_assert(sizeof(lane) == 4);
constexpr bool in_order(lane where) noexcept { return where.kind != lane_kind::staging; }
constexpr bool on_device(lane where) noexcept { return where.kind != lane_kind::staging; }

// The operations. A new one is added at the end.
using payload =
    std::variant<ops::copy_in, ops::copy_out, ops::pack, ops::unpack, ops::gemm, ops::reduce, ops::axpby,
                 ops::elementwise, ops::softmax, ops::norm, ops::dequantize, ops::rotary, ops::convert, ops::gather,
                 ops::im2col, ops::col2im, ops::conv, ops::attention, ops::cell, ops::cell_backward,
                 ops::softmax_backward, ops::custom, ops::clamp, ops::copy, ops::marker, ops::graph, ops::row_dot,
                 ops::row_reduce, ops::cross_entropy, ops::scatter_add, ops::pool, ops::norm_backward, ops::optimizer,
                 ops::score_mask, ops::attention_backward, ops::copy_peer, ops::triangular, ops::symmetric, ops::fill>;
inline constexpr std::size_t operation_count = std::variant_size_v<payload>;

struct command {
  static constexpr std::size_t most_views = 8;

  payload what;
  lane where;
  std::int32_t group = 0;                       // whose scalars it uses
  std::array<accessed_view, most_views> views;  // by the operation's own indices, such as ops::gemm::a
  std::uint32_t first_wait = 0, waits = 0;      // schedule.waits[first_wait .. first_wait + waits): earlier commands

  template <class Operation>
  bool is() const noexcept {
    return std::holds_alternative<Operation>(what);
  }
  template <class Operation>
  Operation *as() noexcept {
    return std::get_if<Operation>(&what);
  }
  template <class Operation>
  const Operation *as() const noexcept {
    return std::get_if<Operation>(&what);
  }
};

}  // namespace sg
