// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/memory/copy.hpp"

#include "backends/cuda/kernels/kernels.hpp"

namespace sg::cuda {

bool is_within_device(const sg_backend_copy &what) noexcept {
  return what.dst_space.kind == SG_MEMORY_DEVICE && what.src_space.kind == SG_MEMORY_DEVICE;
}

namespace {

cudaMemcpyKind kind_of(const sg_backend_copy &what) noexcept {
  if (is_within_device(what)) return cudaMemcpyDeviceToDevice;
  // The driver detects the other memory: the host's, or another GPU's (SG_MEMORY_PEER).
  return cudaMemcpyDefault;
}

// Whether a kernel copies it faster than the copy engine, which has an overhead for each row. On an H200, one way, rows
// of 256 and 512 bytes to the device ran at 45 and 48 GB/s by the kernel, 18 and 27 by the engine; with traffic the
// other way and a busy chip the engine was faster from 1 KiB on. To the host the engine is never slower.
bool is_narrow(const sg_backend_copy &what) noexcept {
  constexpr std::int64_t widest = 512, least_bytes = std::int64_t{64} << 10;
  return what.height > 1 && what.width <= widest && what.width * what.height >= least_bytes &&
         what.dst_space.kind == SG_MEMORY_DEVICE && what.src_space.kind == SG_MEMORY_PINNED;
}

// Whether kernels can access it: pinned, and mapped at the host's address.
bool is_reachable(const void *memory) noexcept {
  cudaPointerAttributes facts{};
  if (cudaPointerGetAttributes(&facts, memory) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return facts.type == cudaMemoryTypeHost && facts.devicePointer == memory;
}

// Rectangles between GPUs: other 2-D copies reach only memory that the stream's GPU has access to.
cudaError_t copy_between_gpus(const sg_backend_copy &what, int own, cudaStream_t in) noexcept {
  const auto bytes = [](std::int64_t count) { return static_cast<std::size_t>(count); };
  const auto device_of = [own](sg_backend_space space) { return space.kind == SG_MEMORY_PEER ? space.device : own; };
  cudaMemcpy3DPeerParms copy{};
  copy.srcDevice = device_of(what.src_space);
  copy.dstDevice = device_of(what.dst_space);
  copy.srcPtr = {const_cast<void *>(what.src), bytes(what.src_pitch), bytes(what.width), bytes(what.height)};
  copy.dstPtr = {what.dst, bytes(what.dst_pitch), bytes(what.width), bytes(what.height)};
  copy.extent = {bytes(what.width), bytes(what.height), 1};
  return cudaMemcpy3DPeerAsync(&copy, in);
}

bool joins_gpus(const sg_backend_copy &what) noexcept {
  const auto is_peer = [](sg_backend_space space) { return space.kind == SG_MEMORY_PEER && space.device >= 0; };
  const auto is_own = [](sg_backend_space space) { return space.kind == SG_MEMORY_DEVICE; };
  return (is_peer(what.src_space) && is_own(what.dst_space)) || (is_own(what.src_space) && is_peer(what.dst_space));
}

}  // namespace

sg_status run_copy(call_stream &in, const sg_backend_copy &what) noexcept {
  gpu &owner = in.owner();
  const auto bytes = [](std::int64_t count) { return static_cast<std::size_t>(count); };
  const bool one_run = what.height == 1 || (what.width == what.dst_pitch && what.width == what.src_pitch);
  if (one_run)
    return owner.check(cudaMemcpyAsync(what.dst, what.src, bytes(what.width * what.height), kind_of(what), in.native()),
                       "starting a copy");
  if (is_narrow(what) && is_reachable(what.src))
    return owner.check(launch_narrow_copy(what, in.native()), "starting a copy");
  const auto longest = static_cast<std::int64_t>(owner.facts().memPitch);
  const bool fits = what.dst_pitch <= longest && what.src_pitch <= longest;
  if (fits && joins_gpus(what))
    return owner.check(copy_between_gpus(what, owner.ordinal(), in.native()), "starting a copy between GPUs");
  if (fits)
    return owner.check(cudaMemcpy2DAsync(what.dst, bytes(what.dst_pitch), what.src, bytes(what.src_pitch),
                                         bytes(what.width), bytes(what.height), kind_of(what), in.native()),
                       "starting a copy");
  for (std::int64_t run = 0; run < what.height; ++run)
    if (const sg_status status = owner.check(cudaMemcpyAsync(static_cast<char *>(what.dst) + run * what.dst_pitch,
                                                             static_cast<const char *>(what.src) + run * what.src_pitch,
                                                             bytes(what.width), kind_of(what), in.native()),
                                             "starting a copy"))
      return status;
  return SG_STATUS_OK;
}

}  // namespace sg::cuda
