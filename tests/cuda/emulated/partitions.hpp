// SPDX-License-Identifier: Apache-2.0
// Green contexts of the emulated GPU, for its other parts.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

struct CUgreenCtx_st {
  const std::uintptr_t groups;
  std::atomic<int> streams{0};
};

namespace emulated {

constexpr unsigned multiprocessors = 16;

const std::map<std::string, void *> &partition_functions();  // the driver's, by their names
cudaError_t create_stream_within(CUgreenCtx context, cudaStream_t *out);
void command_within(const CUgreenCtx_st *context);  // or in no partition: nullptr
void lose_partitions();                             // with the device

}  // namespace emulated
