// SPDX-License-Identifier: Apache-2.0
// Multiprocessors of a GPU that are set aside: a green context, whose streams run on no others.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

#include <cstdint>

namespace sg::cuda {

class device;

class partition {
 public:
  // As many multiprocessors as no other partition of the process has, `most` of them at most. SG_STATUS_UNSUPPORTED
  // where the driver has no green contexts, or none of its groups of multiprocessors is free and small enough.
  static sg_status create(device &owner, std::int32_t most, partition **out) noexcept;
  ~partition();  // after its streams; a lost device keeps the context
  partition(const partition &) = delete;
  partition &operator=(const partition &) = delete;

  std::int32_t units() const noexcept { return units_; }
  sg_status create_stream(int priority, cudaStream_t *out) noexcept;

 private:
  using group_bits = std::uint64_t;
  explicit partition(device &owner) noexcept : owner_(owner) {}
  sg_status start(std::int32_t most) noexcept;

  device &owner_;
  CUgreenCtx context_ = nullptr;
  group_bits groups_ = 0;  // that it holds
  std::int32_t units_ = 0;
};

}  // namespace sg::cuda
