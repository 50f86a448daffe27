// SPDX-License-Identifier: Apache-2.0
// The memory of a simulated device. Its addresses cannot be read or written by the host: each allocation is a range
// reserved without access, and its bytes are stored elsewhere. So a host pointer in place of device memory, or the
// reverse, is detected by these tables or by the processor.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace sg::sim {

// A private anonymous mapping of the process, or none.
class mapping {
 public:
  mapping() = default;
  mapping(std::uint64_t bytes, int protection);  // throws failure(SG_STATUS_OUT_OF_MEMORY)
  mapping(mapping &&other) noexcept;
  mapping &operator=(mapping &&other) noexcept;
  ~mapping();

  std::byte *data() const noexcept { return data_; }

 private:
  std::byte *data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

class address_space {
 public:
  // `limit`: bytes of device memory; `piece`: limit of one allocation. Not `backed`: addresses only, so that any size
  // can be allocated.
  address_space(std::uint64_t limit, std::uint64_t piece, bool backed)
      : limit_(limit), piece_(piece), backed_(backed) {}

  void *device_alloc(std::uint64_t bytes);
  void device_free(void *memory) noexcept;
  std::uint64_t device_free_bytes() const;
  void *pinned_alloc(std::uint64_t bytes);
  void pinned_free(void *memory) noexcept;
  void pin(void *memory, std::uint64_t bytes);
  void unpin(void *memory);

  sg_memory_kind kind_of(const void *memory, std::uint64_t bytes) const noexcept;

  // The stored bytes of a range of device memory; NULL if none are stored. Throws if the range is not inside one
  // allocation; `what` names the operand.
  std::byte *device_bytes(const void *memory, std::uint64_t bytes, const char *what) const;

  // The bytes of host memory: throws if the range overlaps the addresses of this device.
  std::byte *host_bytes(const void *memory, std::uint64_t bytes, const char *what) const;

 private:
  using address = std::uintptr_t;
  struct allocation {
    std::uint64_t bytes = 0;
    mapping handle;  // without access: the device address
    mapping store;   // the bytes
  };
  struct host_range {
    std::uint64_t bytes = 0;
    mapping owned;  // empty if the range was registered
  };

  const std::uint64_t limit_, piece_;
  const bool backed_;
  mutable std::mutex mutex_;
  std::uint64_t used_ = 0;
  std::map<address, allocation> allocations_;
  std::map<address, host_range> pinned_;
};

}  // namespace sg::sim
