// SPDX-License-Identifier: Apache-2.0
// What a stream's worker is told to do: a record of fixed size, copied into the stream's queue.
#pragma once

#include <streamgemm/backend.h>

#include <cstdint>

#include "event.hpp"

namespace sg::cpu {

enum class command_kind : std::uint8_t { notify, wait, copy, gemm, gemm_group, reduce };

// Products that the core keeps until they have been told.
struct product_group {
  const sg_backend_gemm *items;
  std::int32_t count;
  sg_status *statuses;
};

struct command {
  command_kind kind = command_kind::notify;
  sg_backend_done done = {nullptr, nullptr};
  union {
    point until = {};  // wait: holds a reference
    sg_backend_copy copy;
    sg_backend_gemm gemm;  // its pointer arrays are in one block of malloc's, see owned_arrays
    product_group group;
    sg_backend_reduce reduce;
  };
  void *owned_arrays = nullptr;
};

}  // namespace sg::cpu
