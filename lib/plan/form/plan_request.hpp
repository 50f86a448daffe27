// SPDX-License-Identifier: Apache-2.0
// A caller's restrictions of the planner's choice; the defaults restrict nothing.
#pragma once

#include <cstdint>
#include <tuple>

#include "base/device_index.hpp"
#include "model/device_model.hpp"

namespace sg {

enum class split_kind : std::uint8_t { automatic, none, m, n, k, batch };

struct plan_request {
  device_index device{};  // device of the machine that computes it, unless it may be several
  std::uint64_t devices =
      0;  // those that may compute it together, bit i for device i; 0: all, if device_count is given
  std::int32_t device_count = 0;  // exactly so many; 0: one if `devices` is 0, otherwise the planner's choice
  split_kind split = split_kind::automatic;
  // The submitter waits for the job: split into independent parts over more cores, shorter than a busy device should
  // have. No effect unless lanes are cores.
  bool latency = false;
  bool by_rows = false;           // the caller's result is row major, so its m and n are swapped in messages
  std::int32_t parts = 0;         // parts of a split; 0: the planner's choice
  std::int32_t streams = 0;       // limit of compute lanes; 0: the device model's number
  std::int64_t memory_limit = 0;  // limit of the job's device memory in bytes; 0: the device model's memory
  std::int64_t tile_m = 0, tile_n = 0, tile_k = 0;  // tile of host-resident operands; 0: the planner's choice

  bool names_devices() const noexcept { return devices != 0 || device_count != 0; }
  // Whether both have the same plan: only the message of a refused split depends on the caller's layout.
  bool operator==(const plan_request &other) const noexcept {
    const auto key = [](const plan_request &r) {
      const bool splits_c = r.split == split_kind::m || r.split == split_kind::n;
      return std::tuple(r.device, r.devices, r.device_count, r.split, r.latency, splits_c && r.by_rows, r.parts,
                        r.streams, r.memory_limit, r.tile_m, r.tile_n, r.tile_k);
    };
    return key(*this) == key(other);
  }
};

// A request with its defaults filled in.
struct plan_terms {
  const device_model &model;
  const plan_request &request;
  int lanes = 1;
  std::int64_t memory_limit = 0;
};

}  // namespace sg
