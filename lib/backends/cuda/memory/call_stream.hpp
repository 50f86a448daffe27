// SPDX-License-Identifier: Apache-2.0
// A native stream that calls go to, and device memory in its order.
#pragma once

#include <cuda_runtime_api.h>
#include <streamgemm/backend.h>

#include <cstdint>
#include <vector>

#include "backends/cuda/gpu/gpu.hpp"

namespace sg::cuda {

class call_stream {
 public:
  // `captured`: its calls become a graph, which keeps temporary memory and the pinned sources of pointer copies.
  call_stream(gpu &owner, cudaStream_t native, bool captured) noexcept
      : owner_(owner), native_(native), captured_(captured) {}
  call_stream(const call_stream &) = delete;
  call_stream &operator=(const call_stream &) = delete;
  // Frees all memory, once, while the GPU is usable and its context is current; no destructor does.
  void free() noexcept;

  gpu &owner() const noexcept { return owner_; }
  cudaStream_t native() const noexcept { return native_; }
  bool is_captured() const noexcept { return captured_; }

  // Device memory, valid from here to its release in stream order.
  sg_status acquire(std::uint64_t bytes, void **out) noexcept;
  void release(void *memory) noexcept;
  // Copies `count` pointers to device memory; write(pinned) writes them first.
  template <class Write>
  sg_status upload(std::int64_t count, void *to, Write &&write) noexcept {
    const pointer_room *room = nullptr;
    if (const sg_status status = find_room(count, room)) return status;
    write(const_cast<const void **>(room->memory));
    return copy_pointers(*room, count, to);
  }
  // Device memory for `count` pointers, for the stream's next GEMM only.
  sg_status pointer_memory(std::int64_t count, void **out) noexcept;

 private:
  // Pinned sources of pointer copies; reusable once the event has happened.
  struct pointer_room {
    void **memory = nullptr;
    std::int64_t capacity = 0;
    cudaEvent_t copied = nullptr;
  };
  sg_status find_room(std::int64_t count, const pointer_room *&out) noexcept;
  sg_status copy_pointers(const pointer_room &from, std::int64_t count, void *to) noexcept;
  // Temporary memory of captured calls, which run in stream order and so may reuse it.
  struct kept_memory {
    void *start;
    std::uint64_t bytes;
    bool in_use;
  };
  sg_status acquire_kept(std::uint64_t bytes, void **out) noexcept;

  gpu &owner_;
  const cudaStream_t native_;
  const bool captured_;
  void *pointers_ = nullptr;
  std::int64_t pointer_room_ = 0;
  std::vector<pointer_room> rooms_;
  std::vector<kept_memory> kept_;
};

}  // namespace sg::cuda
