// SPDX-License-Identifier: Apache-2.0
// Pinned host memory owned by callers: allocated here, or registered.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "devices/device.hpp"
#include "run/memory/memory_map.hpp"

namespace sg {

// Any thread. Pinned by the first device that is not lost, for all devices of the context.
class pinned_memory {
 public:
  pinned_memory(std::span<const std::shared_ptr<device>> devices, memory_map &known) noexcept
      : devices_(devices), known_(known) {}
  ~pinned_memory();  // frees and unpins the rest
  pinned_memory(const pinned_memory &) = delete;
  pinned_memory &operator=(const pinned_memory &) = delete;

  std::uint64_t allocated_bytes() const noexcept;
  // `node`: as in page_placement. Throws sg::error.
  void *allocate(std::uint64_t bytes, int node = -1);
  std::uint64_t size_of(const void *memory) const;  // of an allocation; 0: not found
  void free(void *memory);  // Throws sg::error unless it came from allocate(). nullptr is a no-op.
  void pin(void *memory, std::uint64_t bytes);
  void unpin(void *memory);

 private:
  struct range {
    std::uint64_t bytes;
    const device *by;
  };
  const device &working() const noexcept;  // the first one if all are lost, whose calls say so

  const std::span<const std::shared_ptr<device>> devices_;
  memory_map &known_;
  mutable std::mutex lock_;
  std::map<std::uintptr_t, range> allocated_, registered_;  // by start
  std::uint64_t allocated_bytes_ = 0;
};

}  // namespace sg
