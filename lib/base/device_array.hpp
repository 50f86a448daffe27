// SPDX-License-Identifier: Apache-2.0
// One object for each device of a machine, indexed by device.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "base/device_index.hpp"

namespace sg {

template <class T>
class device_array {
 public:
  // `make(device_index)` constructs each object; objects need be neither movable nor copyable.
  template <class Make>
  device_array(std::size_t count, Make &&make) : count_(count), all_(std::allocator<T>().allocate(count)) {
    try {
      for (; made_ < count; ++made_) ::new (static_cast<void *>(all_ + made_)) T(make(device_index(made_)));
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~device_array() { destroy(); }
  device_array(const device_array &) = delete;
  device_array &operator=(const device_array &) = delete;

  std::size_t size() const noexcept { return count_; }
  T &operator[](device_index of) const noexcept { return all_[number_of(of)]; }
  T *begin() const noexcept { return all_; }
  T *end() const noexcept { return all_ + count_; }

 private:
  void destroy() noexcept {
    while (made_ > 0) std::destroy_at(all_ + --made_);
    std::allocator<T>().deallocate(all_, count_);
  }

  const std::size_t count_;
  T *const all_;
  std::size_t made_ = 0;
};

}  // namespace sg
