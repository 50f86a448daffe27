// SPDX-License-Identifier: Apache-2.0
// Epilogues in a kernel of their own after the GEMM.
#include <algorithm>

#include "backends/cuda/gemm/gemm.hpp"
#include "backends/cuda/kernels/kernels.hpp"

namespace sg::cuda {

bool has_epilogue(const sg_backend_gemm &g) noexcept { return g.bias != nullptr || g.activation != SG_ACTIVATION_NONE; }

bool has_separate_epilogue(const sg_backend_gemm &g) noexcept { return has_epilogue(g) && !is_short_float(g.out_type); }

const void *bias_of_item(const sg_backend_gemm &g, std::int64_t item) noexcept {
  return g.bias == nullptr ? nullptr
                           : static_cast<const char *>(g.bias) + item * g.stride_bias * element_size(g.out_type);
}

sg_status add_epilogues(gemm_resources &in, const gemm_list &gemms, const sg_status *statuses) noexcept {
  gemm_epilogue gathered[most_parameter_epilogues];
  int size = 0;
  const auto launch = [&] {
    if (size == 0) return SG_STATUS_OK;
    const cudaError_t error = launch_epilogues(gathered, size, gemms[0].out_type, in.native());
    size = 0;
    return in.owner().check(error, "starting an epilogue");
  };
  for (std::size_t i = 0; i < gemms.size(); ++i) {
    const sg_backend_gemm &g = gemms[i];
    if (!has_separate_epilogue(g) || (statuses != nullptr && statuses[i] != SG_STATUS_OK)) continue;
    const std::int64_t pieces = g.c_array != nullptr ? g.batch : 1;
    for (std::int64_t item = 0; item < pieces; ++item) {
      gathered[size++] = {g.c_array != nullptr ? g.c_array[item] : g.c,
                          bias_of_item(g, item),
                          g.m,
                          g.n,
                          g.ldc,
                          g.batch / pieces,
                          g.stride_c,
                          g.stride_bias,
                          g.bias_per_row,
                          g.activation};
      if (size < most_parameter_epilogues) continue;
      if (const sg_status status = launch()) return status;
    }
  }
  return launch();
}

}  // namespace sg::cuda
