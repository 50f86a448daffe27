// SPDX-License-Identifier: Apache-2.0
// GEMMs on threads of the application: workspaces, and the floating-point mode of a worker, restored afterwards.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "workspace.hpp"

namespace sg::cpu {

// Workspaces for application threads, as many as are used at the same time.
class workspace_pool {
 public:
  ~workspace_pool();
  workspace *acquire() noexcept;  // nullptr: out of memory
  void release(workspace *used) noexcept;

 private:
  std::array<std::atomic<workspace *>, 16> kept_{};
};

// Sets a new thread's floating-point mode for its lifetime: rounding to nearest, no flushing.
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
