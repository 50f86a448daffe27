// SPDX-License-Identifier: Apache-2.0
// Products on threads of the application: what such a thread needs to compute like a worker, and leaves as it was.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "workspace.hpp"

namespace sg::cpu {

// Workspaces for such threads, as many as there are at a time.
class workspace_pool {
 public:
  ~workspace_pool();
  workspace *acquire() noexcept;  // nullptr: memory is out
  void release(workspace *used) noexcept;

 private:
  std::array<std::atomic<workspace *>, 16> kept_{};
};

// While it lives, floating-point arithmetic on this thread is that of a new thread: rounding to nearest, no flushing.
class default_arithmetic {
 public:
  default_arithmetic() noexcept;
  ~default_arithmetic();
  default_arithmetic(const default_arithmetic &) = delete;
  default_arithmetic &operator=(const default_arithmetic &) = delete;

 private:
  std::uint32_t before_;
};

}  // namespace sg::cpu
