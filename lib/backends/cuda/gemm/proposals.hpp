// SPDX-License-Identifier: Apache-2.0
// Chooses among cublasLt's proposals for a GEMM when they are not timed.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

namespace sg::cuda {

struct proposal {
  std::uint32_t tile = 0;   // a cublasLtMatmulTile_t
  float waves = 0;          // number of times that its tiles fill the device
  std::int32_t splits = 1;  // parts of K, whose sums another kernel adds
};

// Number of proposals to examine; 1: use cublasLt's first. `major`: of the chip's compute capability.
int proposals_to_examine(const sg_backend_gemm &what, int major) noexcept;
// The index to use. The first is cublasLt's own choice; there is at least one.
std::size_t likely_fastest(const sg_backend_gemm &what, const proposal *from, std::size_t count) noexcept;

}  // namespace sg::cuda
