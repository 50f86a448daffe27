// SPDX-License-Identifier: Apache-2.0
// The operations of triangular.h and symmetric.h, by cuBLAS.
#pragma once

#include "backends/cuda/gemm/gemm_resources.hpp"

namespace sg::cuda {

sg_status run_triangular(gemm_resources &in, const sg_backend_triangular &what) noexcept;
sg_status run_symmetric(gemm_resources &in, const sg_backend_symmetric &what) noexcept;

}  // namespace sg::cuda
