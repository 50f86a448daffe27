// SPDX-License-Identifier: Apache-2.0
// Schedules as text, JSON, and a timeline drawn in characters.
#pragma once

#include <span>
#include <string>

#include "model/machine_model.hpp"
#include "plan/schedule/schedule.hpp"
#include "plan/schedule/simulate.hpp"

namespace sg {

// Strategy, lanes, commands, memory, predicted time, bound and their ratio, a line each; `more`: and a line of them.
std::string describe_text(const schedule &s, const machine_model &machine, std::span<const time_on_devices> more = {});
// "2 devices would take 71.853 ms, 4 devices 59.933 ms".
std::string describe_more_devices(std::span<const time_on_devices> more);
// "2 (NAME): slow, its share of the work would be 3.1 %, and all would take 12.3 ms".
std::string describe_left_out(const left_out_device &what, const machine_model &machine);
// A schedule as one JSON object: strategy, device, devices (indices), device_bytes_each, left_out (device, reason),
// no_peer_paths (why devices of it copy to each other through the host), on_more_devices (devices, predicted_seconds;
// faster ones than its one), tiles, lanes, commands (number
// of each kind), device_bytes, staging_bytes, flops, bytes_in, bytes_out, bytes_peer, predicted_seconds, bound_seconds,
// bound_limit (what binds; "": not known), ratio, overlap_efficiency; and timeline:
// each command's lane, action, start_seconds, end_seconds, and the indices of its dependencies.
std::string describe_json(const schedule &s, const machine_model &machine, std::span<const time_on_devices> more = {});

// One row for each lane and each host worker, one column for each slot of time; a command is shown by a letter, idle
// time by a dot. slot_seconds 0: the time is cut into `columns` slots.
std::string timeline_text(const schedule &s, const timeline &t, double slot_seconds = 0, int columns = 72);

}  // namespace sg
