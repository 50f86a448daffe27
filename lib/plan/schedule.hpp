// SPDX-License-Identifier: Apache-2.0
// A schedule: the commands that carry out one problem (or a group of problems), as plain data. It holds no pointer to
// memory and no object of a backend, so it can be cached, checked, simulated and run any number of times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"

namespace sg {

// Commands of one lane run in the order of the schedule, but for staging and loose copies (loose_copies.hpp); lanes run
// beside each other.
enum class lane_kind : std::uint8_t {
  copy_in,   // host to device engine
  copy_out,  // device to host engine
  compute,   // compute stream `index`
  staging,   // host workers, who pack pageable memory into pinned slots and back: whoever is free takes the first
             // command that may go, so one who is held up holds up nothing else
};
inline constexpr int lane_kinds = 4;

struct lane {
  lane_kind kind = lane_kind::compute;
  std::uint16_t index = 0;
  bool operator==(const lane &) const = default;
};
constexpr bool in_order(lane where) noexcept { return where.kind != lane_kind::staging; }

enum class command_kind : std::uint8_t {
  copy_in,   // in0 (host or staging) -> out (device)
  copy_out,  // in0 (device) -> out (host or staging)
  pack,      // in0 (pageable host) -> out (staging), by a host worker; f32 may become bf16
  unpack,    // in0 (staging) -> out (pageable host), by a host worker
  gemm,      // out = activation(alpha * op_a(in0) * op_b(in1) + beta * out + bias)
  reduce,    // out = activation(beta * out + sum of in0's items + bias); with in0.buffer < 0 there are no such items
};

// What a command multiplies by: the job's own scalar (of problem `group`), or a constant.
enum class scalar_role : std::uint8_t { zero, one, job };

// Operands that each problem has a buffer for, in this order; one that it does not have (a bias) has an empty one.
enum class operand_name : std::uint8_t { a, b, c, bias };
inline constexpr int operands_of_problem = 4;

// A buffer of the schedule. The first operands_of_problem * groups buffers are the operands of each problem of the
// group, bound when the schedule is run. The others are the schedule's own, at an offset in one device arena or in one
// staging (pinned) arena.
enum class buffer_kind : std::uint8_t { operand, device, staging };

struct buffer {
  buffer_kind kind = buffer_kind::operand;
  sg_dtype type = SG_DTYPE_F32;
  bool pointer_array = false;    // operand: item i lies at the i-th bound pointer
  bool on_device = false;        // operand: device memory
  std::int64_t item_stride = 0;  // bytes from item to item
  std::int64_t offset = 0;       // device and staging: bytes into the arena, a multiple of 256
  std::int64_t bytes = 0;  // size; operand: from the first element to the end of the last (pointers: of each item)
};

// Part of a buffer: `items` items from `item`, in each the rows x cols elements at `offset` bytes, column major with
// leading dimension `ld`. An operand that all items share has one item; so has whatever is copied, packed or reduced
// into.
struct view {
  std::int32_t buffer = -1;
  std::int64_t item = 0;
  std::int64_t items = 1;
  std::int64_t offset = 0;
  std::int64_t ld = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

struct command {
  command_kind kind = command_kind::gemm;
  lane where;
  std::int32_t group = 0;  // which problem's scalars
  view out, in0, in1;
  view bias;                         // rows x 1 or 1 x cols of what is written; bias.buffer < 0: none
  std::int64_t m = 0, n = 0, k = 0;  // gemm
  sg_op op_a = SG_OP_N, op_b = SG_OP_N;
  sg_compute compute = SG_COMPUTE_EXACT;
  scalar_role alpha = scalar_role::one, beta = scalar_role::zero;
  sg_activation activation = SG_ACTIVATION_NONE;
  std::uint32_t first_wait = 0, waits = 0;  // schedule.waits[first_wait .. first_wait + waits): earlier commands
};

struct schedule {
  std::string strategy;     // one word or a few: "direct", "split-n x2", "stream ..."
  std::int32_t groups = 1;  // problems
  std::vector<buffer> buffers;
  std::vector<command> commands;                   // in an order in which every wait points backwards
  std::vector<std::uint32_t> waits;                // indices of commands
  std::int64_t device_bytes = 0;                   // size of the device arena
  std::int64_t staging_bytes = 0;                  // size of the staging arena
  std::uint16_t lanes[lane_kinds] = {0, 0, 0, 0};  // lanes used of each kind; of staging, workers
  double flops = 0, bytes_in = 0, bytes_out = 0;   // work and bytes over the link
  double predicted_seconds = 0;                    // by the simulator, on the model that it was planned for
  double bound_seconds = 0;                        // the least time that the model's rates allow (see cost.hpp)
};

}  // namespace sg
