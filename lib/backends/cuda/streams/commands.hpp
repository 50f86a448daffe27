// SPDX-License-Identifier: Apache-2.0
// The kinds of commands that the plugin supports.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>

namespace sg::cuda {

class device;
class stream;

// Downcasts a header to its command struct.
template <class Command>
const Command &as(const sg_backend_command &what) noexcept {
  return reinterpret_cast<const Command &>(what);
}

// GEMMs of one batch.
class gemm_list {
 public:
  gemm_list(const sg_backend_command *const *commands, std::size_t count) noexcept
      : commands_(commands), count_(count) {}
  std::size_t size() const noexcept { return count_; }
  const sg_backend_gemm &operator[](std::size_t index) const noexcept { return as<sg_backend_gemm>(*commands_[index]); }
  const sg_backend_command *const *commands() const noexcept { return commands_; }

 private:
  const sg_backend_command *const *commands_;
  std::size_t count_;
};

bool supports(device &on, const sg_backend_command &what) noexcept;
// Enqueues a copy or a kernel, without notification.
sg_status run_command(stream &in, const sg_backend_command &what) noexcept;

}  // namespace sg::cuda
