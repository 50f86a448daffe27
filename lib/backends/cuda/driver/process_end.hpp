// SPDX-License-Identifier: Apache-2.0
// Process exit: CUDA's own exit handlers destroy its state, and a thread that frees a CUDA object after that crashes.
#pragma once

#include <atomic>
#include <mutex>

namespace sg::cuda {

class process_end {
 public:
  // Installs the handler, once; CUDA has been initialized before, so its own handlers run later.
  static void watch() noexcept;
  // After a library that has handlers of its own was loaded: ours runs before them, too. A few times in a process.
  static void watch_again() noexcept;
  static bool has_begun() noexcept;

  // Held while a CUDA object is freed: process exit waits for it. `allowed()` is false once exit has begun.
  class freeing {
   public:
    freeing() noexcept;
    ~freeing();
    freeing(const freeing &) = delete;
    freeing &operator=(const freeing &) = delete;
    bool allowed() const noexcept { return allowed_; }

   private:
    bool allowed_;
  };
};

}  // namespace sg::cuda
