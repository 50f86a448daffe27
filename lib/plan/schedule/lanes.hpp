// SPDX-License-Identifier: Apache-2.0
// Numbers the lanes of a schedule: each command's lane as one small integer.
#pragma once

#include <algorithm>
#include <vector>

#include "model/device_model.hpp"
#include "plan/schedule/schedule.hpp"

namespace sg {

class lane_numbers {
 public:
  explicit lane_numbers(const schedule &s) : lane_numbers(s.commands) {}
  // Of any elements with a lane, their member `where`. By device, then by kind.
  template <class Placed>
  explicit lane_numbers(const std::vector<Placed> &all) {
    std::size_t devices = 1;
    for (const Placed &x : all) devices = std::max(devices, number_of(x.where.device) + 1);
    first_.resize(devices * lane_kinds + 1);
    for (const Placed &x : all) {
      int &width = first_[row_of(x.where) + 1];
      width = std::max(width, x.where.index + 1);
    }
    for (std::size_t row = 1; row < first_.size(); ++row) first_[row] += first_[row - 1];
  }

  std::size_t devices() const noexcept { return first_.size() / lane_kinds; }
  int count() const noexcept { return first_.back(); }
  int of(lane where) const noexcept { return first_[row_of(where)] + where.index; }
  lane at(int number) const noexcept {
    std::size_t row = 0;
    while (number >= first_[row + 1]) ++row;
    return {lane_kind(row % lane_kinds), std::uint16_t(number - first_[row]), device_index(row / lane_kinds)};
  }

 private:
  static std::size_t row_of(lane where) noexcept {
    return number_of(where.device) * lane_kinds + std::size_t(where.kind);
  }

  std::vector<int> first_;
};

// Devices with a command of the schedule.
inline std::vector<device_index> devices_of(const schedule &s) {
  std::vector<bool> used(most_devices, false);
  for (const command &c : s.commands) used[number_of(c.where.device)] = true;
  std::vector<device_index> all;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) all.push_back(device_index(i));
  return all;
}

// Staging workers of each of the schedule's devices: several share those that it was planned with.
inline std::size_t workers_of(const schedule &s, std::size_t devices, const device_model &model) {
  const std::int32_t planned = s.lanes[int(lane_kind::staging)], own = model.staging_workers;
  return std::size_t(devices > 1 && planned > 0 ? std::min(planned, own) : own);
}

// Bytes of the device arena, or of the staging arena, of one of them.
inline std::int64_t arena_bytes_of(const schedule &s, device_index device, buffer_kind kind) {
  std::int64_t bytes = 0;
  for (const buffer &b : s.buffers)
    if (b.kind == kind && b.space.device() == device) bytes = std::max(bytes, b.offset + b.bytes);
  return bytes;
}
inline std::int64_t device_bytes_of(const schedule &s, device_index device) {
  return arena_bytes_of(s, device, buffer_kind::device);
}

}  // namespace sg
