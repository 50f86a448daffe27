// SPDX-License-Identifier: Apache-2.0
// Device memory that a caller owns.
#pragma once

#include <cstdint>

#include "base/object.hpp"
#include "run/context.hpp"

namespace sg {

class device_buffer final : public object {
 public:
  device_buffer(ref<context> owner, std::uint64_t bytes);  // Throws sg::error.
  ~device_buffer() override;

  void *data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return bytes_; }
  context &owner() const noexcept { return *owner_; }

  // The context's, once the last reference has gone.
  device_buffer *next_condemned = nullptr;
  std::uint32_t last_user_generation = 0;

 private:
  // Jobs in flight may still use the memory: they name it by address.
  void last_ref_dropped() noexcept override { owner_->condemn(*this); }

  const ref<context> owner_;
  const std::uint64_t bytes_;
  void *data_ = nullptr;
};

}  // namespace sg
