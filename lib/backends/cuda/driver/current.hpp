// SPDX-License-Identifier: Apache-2.0
// Makes a device's primary context current for the calling thread, and restores the previous one. Meanwhile stream
// captures of other threads, which can forbid most calls on every thread (cudaStreamCaptureModeGlobal), do not affect
// this thread's calls: they concern the library's own streams, or are requested by the caller.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace sg::cuda {

// The driver's functions; looked up through the runtime, so that the plugin loads on a machine without a driver.
struct driver_functions {
  decltype(&cuDevicePrimaryCtxRetain) retain;
  decltype(&cuDevicePrimaryCtxRelease_v2) release;
  decltype(&cuCtxGetCurrent) get_current;
  decltype(&cuCtxPushCurrent_v2) push;
  decltype(&cuCtxPopCurrent_v2) pop;
  decltype(&cuThreadExchangeStreamCaptureMode) exchange_capture_mode;
  decltype(&cuMemsetD32Async) fill;
};

// Functions for green contexts, which older drivers lack.
struct partition_functions {
  decltype(&cuDeviceGetDevResource) resource;
  decltype(&cuDevSmResourceSplitByCount) split;
  decltype(&cuDevResourceGenerateDesc) describe;
  decltype(&cuGreenCtxCreate) create;
  decltype(&cuGreenCtxDestroy) destroy;
  decltype(&cuGreenCtxStreamCreate) create_stream;
};

// False: the driver lacks a function, with a reason of at most `size` bytes. Any thread.
bool load_driver(char *reason, std::uint64_t size) noexcept;
// The functions after a successful load_driver().
const driver_functions &driver() noexcept;
// nullptr: the driver lacks one. Any thread.
const partition_functions *partitions() noexcept;

// Uses the driver only: threads that release objects at process exit may do so after the runtime is gone, whose
// functions would crash.
class current {
 public:
  explicit current(CUcontext wanted) noexcept {
    CUcontext now = nullptr;
    driver().get_current(&now);
    pushed_ = now != wanted && driver().push(wanted) == CUDA_SUCCESS;
    driver().exchange_capture_mode(&capture_mode_);
  }
  ~current() {
    driver().exchange_capture_mode(&capture_mode_);
    CUcontext gone;
    if (pushed_) driver().pop(&gone);
  }
  current(const current &) = delete;
  current &operator=(const current &) = delete;

 private:
  bool pushed_;
  CUstreamCaptureMode capture_mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then the thread's own mode
};

}  // namespace sg::cuda
