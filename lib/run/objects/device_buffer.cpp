// SPDX-License-Identifier: Apache-2.0
#include "run/objects/device_buffer.hpp"

#include "base/error.hpp"

namespace sg {

device_buffer::device_buffer(ref<job_sink> owner, memory_map &known, arena_pool &kept, std::uint64_t bytes)
    : object(object_type::buffer), owner_(std::move(owner)), known_(known), from_(kept), bytes_(bytes) {
  try {
    data_ = from_.acquire_buffer(bytes, epoch_);
  } catch (const error &e) {
    if (e.status() != SG_STATUS_OUT_OF_MEMORY) throw;
    owner_->free_unused_buffers();  // released buffers without users
    from_.trim();                   // memory kept for later ones
    data_ = from_.acquire_buffer(bytes, epoch_);
  }
  try {
    known_.add(data_, bytes, memory_space::of_device(index()));
  } catch (...) {
    from_.release_buffer(data_, bytes, epoch_);
    throw;
  }
  from_.buffer_bytes.fetch_add(static_cast<std::int64_t>(bytes_), std::memory_order_relaxed);
}

device_buffer::~device_buffer() {
  from_.buffer_bytes.fetch_sub(static_cast<std::int64_t>(bytes_), std::memory_order_relaxed);
  known_.remove(data_);
  from_.release_buffer(data_, bytes_, epoch_);
}

}  // namespace sg
