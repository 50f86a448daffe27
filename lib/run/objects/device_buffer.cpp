// SPDX-License-Identifier: Apache-2.0
#include "run/objects/device_buffer.hpp"

#include "base/error.hpp"

namespace sg {

device_buffer::device_buffer(ref<job_sink> owner, memory_map &known, arena_pool &kept, std::uint64_t bytes)
    : object(object_type::buffer),
      owner_(std::move(owner)),
      known_(known),
      device_(kept.on()),
      index_(kept.index()),
      bytes_(bytes) {
  try {
    data_ = device_.mem_alloc(bytes);
  } catch (const error &e) {
    if (e.status() != SG_STATUS_OUT_OF_MEMORY) throw;
    owner_->free_unused_buffers();  // released buffers without users
    kept.trim();                    // blocks kept for later runs
    data_ = device_.mem_alloc(bytes);
  }
  try {
    known_.add(data_, bytes, memory_space::of_device(index_));
  } catch (...) {
    device_.ops().mem_free(device_.handle(), data_);
    throw;
  }
  owner_->buffer_bytes.fetch_add(static_cast<std::int64_t>(bytes_), std::memory_order_relaxed);
}

device_buffer::~device_buffer() {
  owner_->buffer_bytes.fetch_sub(static_cast<std::int64_t>(bytes_), std::memory_order_relaxed);
  known_.remove(data_);
  device_.ops().mem_free(device_.handle(), data_);
}

}  // namespace sg
