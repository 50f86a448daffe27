// SPDX-License-Identifier: Apache-2.0
// Reserved multiprocessors of a GPU: a green context, whose streams run on no others.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

#include <cstdint>

namespace sg::cuda {

class gpu;

class partition {
 public:
  // Reserves at most `most` multiprocessors that no other partition of the process has. SG_STATUS_UNSUPPORTED if the
  // driver has no green contexts, or if none of its groups of multiprocessors is free and small enough.
  static sg_status create(gpu &owner, std::int32_t most, partition **out) noexcept;
  ~partition();  // after its streams are destroyed; a lost device keeps the context
  partition(const partition &) = delete;
  partition &operator=(const partition &) = delete;

  std::int32_t units() const noexcept { return units_; }
  sg_status create_stream(int priority, cudaStream_t *out) noexcept;

 private:
  using group_bits = std::uint64_t;
  explicit partition(gpu &owner) noexcept : owner_(owner) {}
  sg_status start(std::int32_t most) noexcept;

  gpu &owner_;
  CUgreenCtx context_ = nullptr;
  group_bits groups_ = 0;  // held groups
  std::int32_t units_ = 0;
};

}  // namespace sg::cuda
