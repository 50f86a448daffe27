// SPDX-License-Identifier: Apache-2.0
// A CUDA graph of GEMMs and copies: captured once from streams of its own, launched by one call.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

#include <memory>
#include <vector>

#include "backends/cuda/streams/commands.hpp"

namespace sg::cuda {

class graph {
 public:
  static sg_status create(device &owner, const sg_backend_node *nodes, std::int32_t count, graph **out) noexcept;
  ~graph();
  graph(const graph &) = delete;
  graph &operator=(const graph &) = delete;

  cudaGraphExec_t executable() const noexcept { return executable_; }

 private:
  explicit graph(device &owner) noexcept : owner_(owner) {}
  sg_status build(const sg_backend_node *nodes, std::int32_t count);
  sg_status open_branch();
  sg_status open_branches(const sg_backend_node *nodes, std::int32_t count);
  sg_status capture(const sg_backend_node *nodes, std::int32_t count);
  sg_status enter(std::size_t branch, cudaEvent_t origin);
  sg_status event(cudaEvent_t *out);

  device &owner_;
  // A stream that is captured. Owns the memory of its nodes: workspaces, pointer arrays and the pinned sources of their
  // copies.
  struct branch {
    branch(device &owner, cudaStream_t native) noexcept : calls(owner, native, true) {}
    call_resources calls;
    bool entered = false;  // joined the capture
  };
  std::vector<std::unique_ptr<branch>> branches_;
  std::vector<cudaEvent_t> events_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace sg::cuda
