// SPDX-License-Identifier: Apache-2.0
// The one place that decides which provider computes what.
#pragma once

#include "kernel.hpp"

namespace sg::cpu {

// How products of one pair of types are computed: directly where the kernel takes the operands as they are, by tiles
// otherwise.
struct route {
  kernel direct;  // may be empty
  kernel panels;  // empty: no such product
};

const route &route_for(sg_dtype in, sg_dtype out) noexcept;

// Flops per second of one core, for the device model; 0: no such product.
double rate_of(sg_dtype in) noexcept;

// Starts the libraries on a thread of its own that then ends. OUT_OF_MEMORY, or their failure.
sg_status warm_up() noexcept;

}  // namespace sg::cpu
