// SPDX-License-Identifier: Apache-2.0
// Device memory that a caller owns.
#pragma once

#include <cstdint>

#include "base/object.hpp"
#include "run/memory/arena_pool.hpp"
#include "run/memory/memory_map.hpp"
#include "run/order/job_sink.hpp"

namespace sg {

class device_buffer final : public object {
 public:
  // Memory of `kept`'s device. `known` and `kept`: the context's. When the device has too little memory, blocks kept
  // for runs are freed.
  device_buffer(ref<job_sink> owner, memory_map &known, arena_pool &kept, std::uint64_t bytes);  // Throws sg::error.
  ~device_buffer() override;

  void *data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return bytes_; }
  device_index index() const noexcept { return from_.index(); }  // of its device in the machine
  job_sink &owner() const noexcept { return *owner_; }

  // Used by the context once the last reference is released.
  device_buffer *next_released = nullptr;
  std::uint32_t last_user_epoch = 0;

 private:
  // Jobs in flight may still use the memory: they refer to it by address.
  void last_ref_dropped() noexcept override { owner_->free_when_unused(*this); }

  const ref<job_sink> owner_;
  memory_map &known_;
  arena_pool &from_;
  const std::uint64_t bytes_;
  char *data_ = nullptr;
  std::uint32_t epoch_ = 0;  // of its memory in the pool
};

}  // namespace sg
