// SPDX-License-Identifier: Apache-2.0
// State of a worker between commands: scratch memory that only grows, and a provider's cache.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace sg::cpu {

// A provider's state of one worker.
struct provider_state {
  virtual ~provider_state() = default;
};

enum class scratch : int { panel_a, panel_b, sums, converted, library };
inline constexpr int scratch_count = 5;

class workspace {
 public:
  workspace() = default;
  workspace(const workspace &) = delete;
  workspace &operator=(const workspace &) = delete;
  ~workspace() {
    for (area &x : areas_) std::free(x.memory);
  }

  // At least `bytes` bytes, aligned to 4096, uninitialized; NULL: out of memory. Valid until the next call for the same
  // use.
  void *get(scratch use, std::size_t bytes) noexcept {
    area &x = areas_[static_cast<int>(use)];
    if (x.bytes >= bytes && x.memory != nullptr) return x.memory;
    std::free(x.memory);
    const std::size_t rounded = (bytes + 4095) / 4096 * 4096;
    x.memory = rounded < bytes ? nullptr : std::aligned_alloc(4096, rounded == 0 ? 4096 : rounded);
    x.bytes = x.memory == nullptr ? 0 : rounded;
    return x.memory;
  }

  std::unique_ptr<provider_state> onednn, onednn_conv;
  // Whether the running command should stop early.
  bool is_stopped() const noexcept { return stopped != nullptr && command != nullptr && stopped(command) != 0; }
  int32_t (*stopped)(const sg_backend_done *done) = nullptr;
  const sg_backend_done *command = nullptr;
  bool of_caller = false;       // used by threads of the application, one after another
  bool openmp_limited = false;  // oneDNN's OpenMP is limited to one thread on this worker

 private:
  struct area {
    void *memory = nullptr;
    std::size_t bytes = 0;
  };
  area areas_[scratch_count];
};

}  // namespace sg::cpu
