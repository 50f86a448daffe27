// SPDX-License-Identifier: Apache-2.0
// Which of cublasLt's proposals to take for a GEMM when none is timed.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

namespace sg::cuda {

struct proposal {
  std::uint32_t tile = 0;  // a cublasLtMatmulTile_t
  float waves = 0;         // how many times its tiles fill the device
};

// How many of the proposals are worth a look; 1: cublasLt's first is the one. `major`: of the chip's compute
// capability.
int proposals_to_look_at(const sg_backend_gemm &what, int major) noexcept;
// Of those, the one to take. The first is cublasLt's own choice; there is at least one.
std::size_t likely_fastest(const proposal *from, std::size_t count) noexcept;

}  // namespace sg::cuda
