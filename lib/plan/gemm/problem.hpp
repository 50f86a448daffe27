// SPDX-License-Identifier: Apache-2.0
// A validated request in the planner's form: column major, shapes and memory spaces, no pointers. Requests with equal
// problems share a plan.
#pragma once

#include <cstdint>
#include <tuple>

#include "base/device_index.hpp"
#include "base/dtype.hpp"
#include "base/memory_space.hpp"
#include "plan/gemm/conv_form.hpp"
#include "plan/gemm/layer_form.hpp"

namespace sg {

// One operand as stored: `rows` x `cols`, column major, in every item of the batch.
struct operand {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;           // elements
  std::int64_t item_stride = 0;  // elements from one item of the batch to the next; 0 shares the operand (A and B only)
  sg_dtype type = SG_DTYPE_F32;
  memory_space space;          // never SG_MEMORY_AUTO; on a device with one memory always DEVICE
  bool pointer_array = false;  // items are at separate addresses; item_stride is unused

  bool operator==(const operand &) const = default;
};

// C_i = activation(alpha * op_a(A_i) * op_b(B_i) + beta * C_i + bias_i) for i < batch. All of m, n, batch are > 0; k
// may be 0.
struct problem {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  sg_op op_a = SG_OP_N, op_b = SG_OP_N;
  sg_compute compute = SG_COMPUTE_EXACT;
  operand a, b, c;
  bool no_multiply = false;  // alpha == 0 or k == 0: A and B are not read
  bool beta_zero = true;     // C is not read
  operand bias;              // m x 1: a value for each row of C; 1 x n: for each column; 0 x 0: no bias
  sg_activation activation = SG_ACTIVATION_NONE;
  bool downcast_to_bf16 = false;  // set by the planner: A and B, of f32, are rounded to bf16 while staged

  bool operator==(const problem &) const = default;

  bool has_bias() const noexcept { return bias.rows > 0; }
  bool has_epilogue() const noexcept { return has_bias() || activation != SG_ACTIVATION_NONE; }
  // The problem with bf16 factors, as the link and the device see it.
  problem as_on_device() const noexcept {
    problem p = *this;
    if (!downcast_to_bf16) return p;
    p.a.type = p.b.type = SG_DTYPE_BF16;
    p.compute = SG_COMPUTE_EXACT;
    p.downcast_to_bf16 = false;
    return p;
  }
  double flops() const noexcept {
    return no_multiply ? 0.0 : flops_per_mac(a.type) * double(m) * double(n) * double(k) * double(batch);
  }
  // Bytes of an operand's distinct elements, without gaps.
  static double bytes(const operand &x, std::int64_t batch) noexcept {
    const bool shared = !x.pointer_array && x.item_stride == 0;
    return double(x.rows) * double(x.cols) * double(size_of(x.type)) * double(shared ? 1 : batch);
  }
};

// A caller's restrictions of the planner's choice; the defaults restrict nothing.
enum class split_kind : std::uint8_t { automatic, none, m, n, k, batch };

// What the problems of a request are together: independent GEMMs, or those of a layer (plan/layers).
enum class layer_kind : std::uint8_t { none, linear_backward, conv, conv_backward, own };

struct plan_request {
  device_index device{};  // device of the machine that computes it
  split_kind split = split_kind::automatic;
  // The submitter waits for the job: split into independent parts over more cores, shorter than a busy device should
  // have. No effect unless lanes are cores.
  bool latency = false;
  bool by_rows = false;           // the caller's C is row major, so its m and n are swapped in messages
  std::int32_t parts = 0;         // parts of a split; 0: the planner's choice
  std::int32_t streams = 0;       // limit of compute lanes; 0: the device model's number
  std::int64_t memory_limit = 0;  // limit of the job's device memory in bytes; 0: the device model's memory
  std::int64_t tile_m = 0, tile_n = 0, tile_k = 0;  // tile of host-resident operands; 0: the planner's choice
  layer_kind layer = layer_kind::none;
  // Of linear_backward: is dY A, and not B, in the GEMM of dX, and in that of dW?
  bool dy_is_a[2] = {false, false};
  shared_conv_form conv;   // of conv and conv_backward
  shared_layer_form form;  // of a layer of its own kind, whose problems say nothing

  // Whether both have the same plan: only the message of a refused split depends on the caller's layout.
  bool operator==(const plan_request &other) const noexcept {
    const auto key = [](const plan_request &r) {
      const bool splits_c = r.split == split_kind::m || r.split == split_kind::n;
      return std::tuple(r.device, r.split, r.latency, splits_c && r.by_rows, r.parts, r.streams, r.memory_limit,
                        r.tile_m, r.tile_n, r.tile_k, r.layer, r.dy_is_a[0], r.dy_is_a[1]);
    };
    return key(*this) == key(other) && conv == other.conv && form == other.form;
  }
};

}  // namespace sg
