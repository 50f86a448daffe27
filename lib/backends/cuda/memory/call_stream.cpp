// SPDX-License-Identifier: Apache-2.0
// The device memory of a stream: its workspace, and temporary memory of its commands.
#include <cstring>
#include <new>

#include "backends/cuda/failure.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/streams/current.hpp"
#include "backends/cuda/streams/stream.hpp"

namespace sg::cuda {
namespace {

// The size that cuBLAS's documentation recommends: 32 MiB from Hopper on, 4 MiB before.
std::uint64_t workspace_bytes(const cudaDeviceProp &facts) noexcept {
  return std::uint64_t{facts.major >= 9 ? 32u : 4u} << 20;
}

}  // namespace

// With less memory cuBLAS excludes the kernels that need more.
sg_status stream::take_workspace() noexcept {
  constexpr std::uint64_t enough_for_all = 64 << 10;
  for (std::uint64_t bytes = workspace_bytes(owner_.facts());; bytes /= 8) {
    const sg_status status = acquire(bytes, &workspace_);
    if (status == SG_STATUS_OK) workspace_bytes_ = bytes;
    if (status != SG_STATUS_OUT_OF_MEMORY || bytes / 8 < enough_for_all) return status;
  }
}

sg_status stream::acquire(std::uint64_t bytes, void **out) noexcept {
  *out = nullptr;
  if (captured_) return acquire_kept(bytes, out);
  return owner_.check(cudaMallocFromPoolAsync(out, bytes, owner_.pool(), native_), "allocating device memory");
}

void stream::release(void *memory) noexcept {
  if (memory == nullptr) return;
  if (!captured_) {
    owner_.check(cudaFreeAsync(memory, native_), "freeing device memory");
    return;
  }
  for (kept_memory &each : kept_)
    if (each.start == memory) each.in_use = false;
}

// Allocation nodes in a CUDA graph would map the memory again at each launch.
sg_status stream::acquire_kept(std::uint64_t bytes, void **out) noexcept {
  kept_memory *best = nullptr;
  for (kept_memory &each : kept_)
    if (!each.in_use && each.bytes >= bytes && (best == nullptr || each.bytes < best->bytes)) best = &each;
  if (best == nullptr) {
    kept_memory fresh{nullptr, bytes, true};
    try {
      kept_.reserve(kept_.size() + 1);
    } catch (const std::bad_alloc &) {
      return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a graph");
    }
    if (const sg_status status = owner_.mem_alloc(bytes, &fresh.start)) return status;
    kept_.push_back(fresh);
    best = &kept_.back();
  }
  best->in_use = true;
  *out = best->start;
  return SG_STATUS_OK;
}

sg_status stream::pointer_memory(std::int64_t count, void **out) noexcept {
  if (count > pointer_room_) {
    release(std::exchange(pointers_, nullptr));
    pointer_room_ = 0;
    const std::int64_t room = std::max<std::int64_t>(4096, 2 * count);
    if (const sg_status status = acquire(static_cast<std::uint64_t>(room) * sizeof(void *), &pointers_)) return status;
    pointer_room_ = room;
  }
  *out = pointers_;
  return SG_STATUS_OK;
}

sg_status stream::find_room(std::int64_t count, const pointer_room *&out) noexcept {
  auto room = std::find_if(rooms_.begin(), rooms_.end(), [&](const pointer_room &x) {
    return !captured_ && x.capacity >= count && state_of(x.copied) == cudaSuccess;
  });
  try {
    if (room == rooms_.end()) {
      rooms_.reserve(rooms_.size() + 1);
      pointer_room fresh;
      fresh.capacity = std::max<std::int64_t>(4096, count);
      void *memory = nullptr;
      if (const sg_status status =
              owner_.check(cudaEventCreateWithFlags(&fresh.copied, cudaEventDisableTiming), "creating an event"))
        return status;
      if (const sg_status status =
              owner_.host_alloc(static_cast<std::uint64_t>(fresh.capacity) * sizeof(void *), &memory)) {
        cudaEventDestroy(fresh.copied);
        return status;
      }
      fresh.memory = static_cast<void **>(memory);
      room = rooms_.insert(rooms_.end(), fresh);
    }
  } catch (const std::bad_alloc &) {
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory for a batch's pointers");
  }
  out = &*room;
  return SG_STATUS_OK;
}

sg_status stream::copy_pointers(const pointer_room &from, std::int64_t count, void *to) noexcept {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(void *);
  if (const sg_status status =
          owner_.check(cudaMemcpyAsync(to, from.memory, bytes, cudaMemcpyHostToDevice, native_), "copying pointers"))
    return status;
  if (captured_) return SG_STATUS_OK;  // each launch copies from it
  return owner_.check(cudaEventRecord(from.copied, native_), "recording an event");
}

}  // namespace sg::cuda
