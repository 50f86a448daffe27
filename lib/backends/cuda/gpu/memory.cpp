// SPDX-License-Identifier: Apache-2.0
// Memory: the stream-ordered pool for the device, registered pages for the host.
#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "backends/cuda/driver/current.hpp"
#include "backends/cuda/driver/failure.hpp"
#include "backends/cuda/driver/process_end.hpp"
#include "backends/cuda/gpu/gpu.hpp"

namespace sg::cuda {
namespace {

constexpr std::uint64_t page = 4096, huge_page = std::uint64_t{2} << 20;

// Maps `bytes`, a multiple of 4096; in huge pages if available, because these are registered twice as fast.
void *map_pages(std::uint64_t bytes) noexcept {
  const std::uint64_t slack = bytes < huge_page ? 0 : huge_page;
  void *memory = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto *start = static_cast<char *>(memory);
  if (slack == 0) return start;
  const std::uint64_t before = (huge_page - reinterpret_cast<std::uintptr_t>(start) % huge_page) % huge_page;
  if (before > 0) munmap(start, before);
  if (before < slack) munmap(start + before + bytes, slack - before);
  madvise(start + before, bytes, MADV_HUGEPAGE);
  return start + before;
}

}  // namespace

// Waits for its own stream only, unlike cudaMalloc and cudaFree, which synchronize the device.
sg_status gpu::mem_alloc(std::uint64_t bytes, void **out) noexcept {
  *out = nullptr;
  if (const sg_status status = usable()) return status;
  const current here(context_);
  if (bytes > facts_.totalGlobalMem)
    return fail(SG_STATUS_OUT_OF_MEMORY, "cuda:%d has %zu bytes of memory, %llu were asked for", ordinal_,
                facts_.totalGlobalMem, static_cast<unsigned long long>(bytes));
  if (!pools_.load(std::memory_order_relaxed)) return alloc_unpooled(bytes, out);
  void *memory = nullptr;
  const auto attempt = [&] {
    return cudaMallocFromPoolAsync(&memory, std::max<std::uint64_t>(bytes, 1), pool_, memory_stream_);
  };
  cudaError_t error = attempt();
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    cudaStreamSynchronize(memory_stream_);
    cudaMemPoolTrimTo(pool_, 0);
    error = attempt();
  }
  if (const sg_status status = check(error, "allocating device memory")) return status;
  if (const sg_status status = check(cudaStreamSynchronize(memory_stream_), "allocating device memory")) {
    cudaFreeAsync(memory, memory_stream_);
    return status;
  }
  *out = memory;
  return SG_STATUS_OK;
}

sg_status gpu::alloc_unpooled(std::uint64_t bytes, void **out) noexcept {
  void *memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, std::max<std::uint64_t>(bytes, 1));
  if (const sg_status status = check(error, "allocating device memory")) return status;
  try {
    const std::lock_guard lock(lock_);
    unpooled_.insert(memory);
  } catch (const std::bad_alloc &) {
    cudaFree(memory);
    return fail(SG_STATUS_OUT_OF_MEMORY, "no memory to note device memory in");
  }
  *out = memory;
  return SG_STATUS_OK;
}

// The driver's free memory, and the pool's unused memory.
sg_status gpu::mem_free_bytes(std::uint64_t *out) noexcept {
  *out = 0;
  if (const sg_status status = usable()) return status;
  const current here(context_);
  std::size_t free = 0, total = 0;
  if (const sg_status status = check(cudaMemGetInfo(&free, &total), "asking for the free memory")) return status;
  std::uint64_t reserved = 0, used = 0;
  if (cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved) != cudaSuccess ||
      cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess) {
    cudaGetLastError();
    reserved = used = 0;
  }
  *out = free + reserved - std::min(used, reserved);
  return SG_STATUS_OK;
}

void gpu::mem_free(void *memory) noexcept {
  const process_end::freeing now;
  if (memory == nullptr || usable() != SG_STATUS_OK) return;
  const current here(context_);
  const bool is_unpooled = [&] {
    const std::lock_guard lock(lock_);
    return unpooled_.erase(memory) > 0;
  }();
  if (is_unpooled && stuck_ordinal() >= 0) return;
  check(is_unpooled ? cudaFree(memory) : cudaFreeAsync(memory, memory_stream_), "freeing device memory");
}

sg_status gpu::host_alloc(std::uint64_t bytes, void **out) noexcept {
  *out = nullptr;
  if (const sg_status status = usable()) return status;
  const current here(context_);
  const std::uint64_t rounded = (std::max<std::uint64_t>(bytes, 1) + page - 1) / page * page;
  void *memory = rounded < bytes || rounded > UINT64_MAX / 2 ? nullptr : map_pages(rounded);
  if (memory == nullptr)
    return fail(SG_STATUS_OUT_OF_MEMORY, "no pinned memory for %llu bytes", static_cast<unsigned long long>(bytes));
  sg_status status = check(cudaHostRegister(memory, rounded, cudaHostRegisterPortable), "pinning memory");
  if (status == SG_STATUS_OK) {
    try {
      const std::lock_guard lock(lock_);
      mapped_.emplace(memory, rounded);
      *out = memory;
      return SG_STATUS_OK;
    } catch (const std::bad_alloc &) {
      cudaHostUnregister(memory);
      status = fail(SG_STATUS_OUT_OF_MEMORY, "no memory to note pinned memory in");
    }
  }
  munmap(memory, rounded);
  return status;
}

void gpu::host_free(void *memory) noexcept {
  const process_end::freeing now;
  if (memory == nullptr || usable() != SG_STATUS_OK || stuck_ordinal() >= 0) return;
  const current here(context_);
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(lock_);
    const auto found = mapped_.find(memory);
    bytes = found->second;
    mapped_.erase(found);
  }
  check(cudaHostUnregister(memory), "freeing pinned memory");
  munmap(memory, bytes);
}

sg_status gpu::host_register(void *memory, std::uint64_t bytes) noexcept {
  if (const sg_status status = usable()) return status;
  const current here(context_);
  return check(cudaHostRegister(memory, bytes, cudaHostRegisterPortable), "pinning memory");
}

sg_status gpu::host_unregister(void *memory) noexcept {
  if (const sg_status status = usable()) return status;
  if (const int stuck = stuck_ordinal(); stuck >= 0)
    return fail(SG_STATUS_BACKEND_FAILURE,
                "cuda:%d: memory stays pinned, because a stream of cuda:%d waits for a lost GPU", ordinal_, stuck);
  const current here(context_);
  return check(cudaHostUnregister(memory), "unpinning memory");
}

// A range is pinned, or another GPU's, if both its ends are.
sg_backend_space gpu::memory_space(const void *memory, std::uint64_t bytes) noexcept {
  const current here(context_);
  const auto space_at = [this](const void *where) -> sg_backend_space {
    cudaPointerAttributes facts{};
    if (const cudaError_t error = cudaPointerGetAttributes(&facts, where); error != cudaSuccess) {
      check(error, "asking for the kind of memory");
      // A lost device's memory is not recognisable, so the host must not read any memory as its own.
      return {usable() == SG_STATUS_OK ? SG_MEMORY_PAGEABLE : SG_MEMORY_DEVICE, 0};
    }
    switch (facts.type) {
      case cudaMemoryTypeHost: return {SG_MEMORY_PINNED, 0};
      case cudaMemoryTypeDevice:
        if (facts.device != ordinal_) return {SG_MEMORY_PEER, facts.device};
        return {SG_MEMORY_DEVICE, 0};
      case cudaMemoryTypeManaged: return {SG_MEMORY_DEVICE, 0};
      default: return {SG_MEMORY_PAGEABLE, 0};
    }
  };
  const sg_backend_space first = space_at(memory);
  if ((first.kind != SG_MEMORY_PINNED && first.kind != SG_MEMORY_PEER) || bytes == 0) return first;
  const sg_backend_space last = space_at(static_cast<const char *>(memory) + bytes - 1);
  return last.kind == first.kind && last.device == first.device ? first : sg_backend_space{SG_MEMORY_PAGEABLE, 0};
}

}  // namespace sg::cuda
