// SPDX-License-Identifier: Apache-2.0
// An entry of a stream's queue, of fixed size.
#pragma once

#include <streamgemm/backend.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/threads/event.hpp"
#include "operations.hpp"

namespace sg::cpu {

enum class command_kind : std::uint8_t { wait, one, batch };

// GEMMs of a batch, kept until their completion is notified.
struct gemm_batch {
  const sg_backend_command *const *gemms;
  std::int32_t count;
  sg_status *statuses;

  const sg_backend_gemm &gemm(std::int32_t index) const noexcept {
    return *reinterpret_cast<const sg_backend_gemm *>(gemms[index]);
  }
};

struct command {
  command_kind kind = command_kind::one;
  sg_backend_done done = {nullptr, nullptr};
  const operation *what = nullptr;  // one
  union {
    stream_position until = {};  // wait: holds a reference
    gemm_batch batch;
    alignas(16) std::byte bytes[most_command_bytes];  // one: a copy of the command
  };
  void *owned_arrays = nullptr;  // one: a GEMM's pointer arrays, in one block of malloc

  const sg_backend_command &one() const noexcept { return *reinterpret_cast<const sg_backend_command *>(bytes); }
};

}  // namespace sg::cpu
