// SPDX-License-Identifier: Apache-2.0
// Process exit: CUDA's own exit handlers destroy its state, and a thread that frees a CUDA object after that crashes.
#pragma once

#include <atomic>
#include <mutex>

namespace sg::cuda {

class process_end {
 public:
  // Installs the handler, once; CUDA has been used before, so that its own handlers come later.
  static void watch() noexcept;
  static bool has_begun() noexcept;

  // Held while something of CUDA's is freed: the end of the process waits for it. `allowed()` is false when it is too
  // late.
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
