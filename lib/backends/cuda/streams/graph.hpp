// SPDX-License-Identifier: Apache-2.0
// A CUDA graph of GEMMs and copies: captured once from streams of its own, of one GPU or several, launched by one call.
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
  std::uint64_t others() const noexcept { return others_; }  // GPUs besides its own, bit i for ordinal i

 private:
  explicit graph(device &owner) noexcept : owner_(owner) {}
  sg_status build(const sg_backend_node *nodes, std::int32_t count);
  sg_status open_branch(device &on);
  sg_status open_branches(device &on, const sg_backend_node *nodes, std::int32_t count);
  device &device_of(const sg_backend_node &node) const noexcept;
  sg_status open_branches(const sg_backend_node *nodes, std::int32_t count);
  sg_status capture(const sg_backend_node *nodes, std::int32_t count);
  sg_status enter(std::size_t branch, cudaEvent_t origin);
  sg_status mark(std::size_t branch, cudaEvent_t *out);
  sg_status wait(std::size_t branch, cudaEvent_t until);

  device &owner_;
  // A stream that is captured. Owns the memory of its nodes: workspaces, pointer arrays and the pinned sources of their
  // copies.
  struct branch {
    branch(device &own, cudaStream_t native) noexcept : on(own), calls(own, native, true) {}
    device &on;
    call_resources calls;
    std::vector<cudaEvent_t> events;
    bool entered = false;  // joined the capture
  };
  // Those of one GPU, which its nodes take in turn.
  struct branch_range {
    device *on;
    std::size_t first, count, next;
  };
  std::vector<std::unique_ptr<branch>> branches_;
  std::vector<branch_range> ranges_;
  std::uint64_t others_ = 0;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace sg::cuda
