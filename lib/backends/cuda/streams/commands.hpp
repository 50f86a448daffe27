// SPDX-License-Identifier: Apache-2.0
// The kinds of commands that the plugin supports, and what their calls use.
#pragma once

#include <streamgemm/backend.h>

#include "backends/cuda/dnn/executables.hpp"
#include "backends/cuda/gemm/gemm_resources.hpp"
#include "backends/cuda/streams/device.hpp"

namespace sg::cuda {

// Of one stream, or of one branch of a graph.
struct call_resources : gemm_resources {
  call_resources(device &owner, cudaStream_t native, bool captured) noexcept
      : gemm_resources(owner, native, captured, owner.tuned()), dnn(owner.executables()) {}
  void free() noexcept {
    gemm_resources::free();
    dnn.free();
  }

  dnn::stream_resources dnn;
};

bool supports(device &on, const sg_backend_command &what) noexcept;
// Enqueues a copy or a kernel, without notification.
sg_status run_command(call_resources &in, const sg_backend_command &what) noexcept;

}  // namespace sg::cuda
