// SPDX-License-Identifier: Apache-2.0
#include "current.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>

namespace sg::cuda {
namespace {

struct found {
  driver_functions functions{};
  const char *missing = nullptr;

  found() noexcept {
    const auto find = [this]<class Function>(Function &function, const char *name) {
      void *address = nullptr;
      cudaDriverEntryPointQueryResult answer;
      constexpr unsigned since = 12000;
      if (cudaGetDriverEntryPointByVersion(name, &address, since, cudaEnableDefault, &answer) != cudaSuccess ||
          answer != cudaDriverEntryPointSuccess)
        missing = name;
      function = reinterpret_cast<Function>(address);
    };
    find(functions.retain, "cuDevicePrimaryCtxRetain");
    find(functions.release, "cuDevicePrimaryCtxRelease");
    find(functions.get_current, "cuCtxGetCurrent");
    find(functions.push, "cuCtxPushCurrent");
    find(functions.pop, "cuCtxPopCurrent");
    find(functions.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
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

}  // namespace sg::cuda
