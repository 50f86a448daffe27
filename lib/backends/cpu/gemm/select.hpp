// SPDX-License-Identifier: Apache-2.0
// Chooses the provider of each GEMM; no other file does.
#pragma once

#include "kernel.hpp"
#include "tiles.hpp"

namespace sg::cpu {

// The kernels for one pair of types: direct if the kernel supports the operands as they are, otherwise by tiles; large
// GEMMs by tiles in any case if those are faster.
struct route {
  kernel direct;  // may be empty
  kernel panels;  // empty: no such GEMM
  kernel large;   // may be empty
  tiling large_tiles;
  // Minimum of each dimension, and of the multiply-adds, of a large GEMM.
  std::int64_t least = 256, least_work = std::int64_t{1} << 29;

  bool is_large(const gemm_args &p) const noexcept {
    return large && p.m >= least && p.n >= least && p.k >= least && p.m * p.n >= (least_work + p.k - 1) / p.k;
  }
};

const route &route_for(sg_dtype in, sg_dtype out) noexcept;

// Flops per second of one core, for the device model; 0: no such GEMM.
double rate_of(sg_dtype in) noexcept;

// After warm_up(): whether a library with CBLAS was found.
bool has_cblas() noexcept;
// Likewise of oneDNN, and of one that this library was built for.
bool misses_onednn() noexcept;

// Initializes the libraries on a temporary thread. OUT_OF_MEMORY, or their failure.
sg_status warm_up() noexcept;

}  // namespace sg::cpu
