// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/memory/call_stream.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "backends/cuda/driver/failure.hpp"

namespace sg::cuda {

sg_status call_stream::acquire(std::uint64_t bytes, void **out) noexcept {
  *out = nullptr;
  if (captured_) return acquire_kept(bytes, out);
  return owner_.check(cudaMallocFromPoolAsync(out, bytes, owner_.pool(), native_), "allocating device memory");
}

void call_stream::release(void *memory) noexcept {
  if (memory == nullptr) return;
  if (!captured_) {
    owner_.check(cudaFreeAsync(memory, native_), "freeing device memory");
    return;
  }
  for (kept_memory &each : kept_)
    if (each.start == memory) each.in_use = false;
}

// Allocation nodes in a CUDA graph would map the memory again at each launch.
sg_status call_stream::acquire_kept(std::uint64_t bytes, void **out) noexcept {
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

sg_status call_stream::pointer_memory(std::int64_t count, void **out) noexcept {
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

sg_status call_stream::find_room(std::int64_t count, const pointer_room *&out) noexcept {
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

sg_status call_stream::copy_pointers(const pointer_room &from, std::int64_t count, void *to) noexcept {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(void *);
  if (const sg_status status =
          owner_.check(cudaMemcpyAsync(to, from.memory, bytes, cudaMemcpyHostToDevice, native_), "copying pointers"))
    return status;
  if (captured_) return SG_STATUS_OK;  // each launch copies from it
  return owner_.check(cudaEventRecord(from.copied, native_), "recording an event");
}

void call_stream::free() noexcept {
  release(pointers_);
  for (const kept_memory &each : kept_) owner_.mem_free(each.start);
  for (const pointer_room &room : rooms_) {
    if (room.copied != nullptr) cudaEventDestroy(room.copied);
    owner_.host_free(room.memory);
  }
}

}  // namespace sg::cuda
