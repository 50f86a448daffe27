// SPDX-License-Identifier: Apache-2.0
// The one place that decides which provider computes what.
#pragma once

#include "kernel.hpp"
#include "tiles.hpp"

namespace sg::cpu {

// How products of one pair of types are computed: directly where the kernel takes the operands as they are, by tiles
// otherwise; and large ones by tiles in any case where those are faster.
struct route {
  kernel direct;  // may be empty
  kernel panels;  // empty: no such product
  kernel large;   // may be empty
  tiling large_tiles;
  std::int64_t least = 256, least_work = std::int64_t{1} << 29;  // of each dimension, and of them all: what is large

  bool is_large(const gemm_args &p) const noexcept {
    return large && p.m >= least && p.n >= least && p.k >= least && p.m * p.n >= (least_work + p.k - 1) / p.k;
  }
};

const route &route_for(sg_dtype in, sg_dtype out) noexcept;

// Flops per second of one core, for the device model; 0: no such product.
double rate_of(sg_dtype in) noexcept;

// After warm_up(): whether a library with CBLAS was found.
bool has_cblas() noexcept;

// Starts the libraries on a thread of its own that then ends. OUT_OF_MEMORY, or their failure.
sg_status warm_up() noexcept;

}  // namespace sg::cpu
