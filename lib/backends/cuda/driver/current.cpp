// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/current.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>

namespace sg::cuda {
namespace {

// The driver's function of that name and CUDA version; nullptr: none.
template <class Function>
bool find(Function &function, const char *name, unsigned since) noexcept {
  void *address = nullptr;
  cudaDriverEntryPointQueryResult answer;
  const bool is_found =
      cudaGetDriverEntryPointByVersion(name, &address, since, cudaEnableDefault, &answer) == cudaSuccess &&
      answer == cudaDriverEntryPointSuccess;
  function = is_found ? reinterpret_cast<Function>(address) : nullptr;
  return is_found;
}

struct found {
  driver_functions functions{};
  const char *missing = nullptr;
  partition_functions of_partitions{};
  bool has_partitions;

  found() noexcept {
    const auto need = [this](auto &function, const char *name) {
      if (!find(function, name, 12000)) missing = name;
    };
    need(functions.retain, "cuDevicePrimaryCtxRetain");
    need(functions.release, "cuDevicePrimaryCtxRelease");
    need(functions.get_current, "cuCtxGetCurrent");
    need(functions.push, "cuCtxPushCurrent");
    need(functions.pop, "cuCtxPopCurrent");
    need(functions.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
    need(functions.fill, "cuMemsetD32Async");
    constexpr unsigned since = 12050;
    has_partitions = find(of_partitions.resource, "cuDeviceGetDevResource", since) &&
                     find(of_partitions.split, "cuDevSmResourceSplitByCount", since) &&
                     find(of_partitions.describe, "cuDevResourceGenerateDesc", since) &&
                     find(of_partitions.create, "cuGreenCtxCreate", since) &&
                     find(of_partitions.destroy, "cuGreenCtxDestroy", since) &&
                     find(of_partitions.create_stream, "cuGreenCtxStreamCreate", since);
  }
};

const found &the_driver() noexcept {
  static const found only;
  return only;
}

}  // namespace

bool load_driver(char *reason, std::uint64_t size) noexcept {
  if (the_driver().missing == nullptr) return true;
  std::snprintf(reason, size, "the NVIDIA driver has no %s", the_driver().missing);
  return false;
}

const driver_functions &driver() noexcept { return the_driver().functions; }

const partition_functions *partitions() noexcept {
  return the_driver().has_partitions ? &the_driver().of_partitions : nullptr;
}

}  // namespace sg::cuda
