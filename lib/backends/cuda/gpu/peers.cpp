// SPDX-License-Identifier: Apache-2.0
// Access to the memory of other GPUs. Memory of a pool is another GPU's only if the pool says so: peer access of the
// contexts, which cudaDeviceEnablePeerAccess gives, does not concern it. Without, no copy reaches it (CUDA 13, driver
// 580: an invalid argument), while memory of cudaMalloc is copied through the host.
#include <cstdlib>
#include <cstring>

#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/gpu/gpu.hpp"

namespace sg::cuda {

namespace {

bool is_forbidden() noexcept {
  const char *value = secure_getenv("SG_PEER");
  return value != nullptr && std::strcmp(value, "0") == 0;
}

}  // namespace

void gpu::disconnect(gpu &other) noexcept {
  other.pools_.store(false, std::memory_order_relaxed);
  if (usable() != SG_STATUS_OK) return;
  const current here(context_);
  cudaMemAccessDesc none{};
  none.location = {cudaMemLocationTypeDevice, ordinal_};
  none.flags = cudaMemAccessFlagsProtNone;
  cudaMemPoolSetAccess(other.pool_, &none, 1);
  cudaDeviceDisablePeerAccess(other.ordinal_);
  cudaGetLastError();  // it was not enabled
}

sg_status gpu::connect(gpu &other) noexcept {
  const sg_status status = share_with_this(other);
  if (status != SG_STATUS_OK) other.pools_.store(false, std::memory_order_relaxed);
  return status;
}

sg_status gpu::share_with_this(const gpu &other) noexcept {
  if (const sg_status status = usable()) return status;
  if (is_forbidden()) return fail(SG_STATUS_UNSUPPORTED, "SG_PEER is 0");
  const current here(context_);
  int can = 0;
  if (const sg_status status = check(cudaDeviceCanAccessPeer(&can, ordinal_, other.ordinal_), "asking for peer access"))
    return status;
  if (can == 0)
    return fail(SG_STATUS_UNSUPPORTED, "the driver gives cuda:%d no access to the memory of cuda:%d", ordinal_,
                other.ordinal_);
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(other.ordinal_, 0);
  if (enabled == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();
  else if (enabled != cudaSuccess) {  // a system without switches has few such connections
    if (const sg_status status = check(enabled, "enabling peer access"); loss() != SG_STATUS_OK) return status;
    return fail(SG_STATUS_UNSUPPORTED, "cuda:%d: enabling access to the memory of cuda:%d: %s", ordinal_,
                other.ordinal_, cudaGetErrorString(enabled));
  }
  cudaMemAccessDesc access{};
  access.location = {cudaMemLocationTypeDevice, ordinal_};
  access.flags = cudaMemAccessFlagsProtReadWrite;
  const cudaError_t shared = cudaMemPoolSetAccess(other.pool_, &access, 1);
  if (shared == cudaSuccess) return SG_STATUS_OK;
  if (const sg_status status = check(shared, "sharing a memory pool"); loss() != SG_STATUS_OK) return status;
  return fail(SG_STATUS_UNSUPPORTED, "cuda:%d: access to the memory pool of cuda:%d: %s", ordinal_, other.ordinal_,
              cudaGetErrorString(shared));
}

}  // namespace sg::cuda
