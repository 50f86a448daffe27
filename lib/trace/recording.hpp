// SPDX-License-Identifier: Apache-2.0
// What a recording has collected.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/machine_model.hpp"
#include "plan/form/form.hpp"
#include "plan/schedule/schedule.hpp"
#include "trace/event.hpp"

namespace sg::trace {

struct recorded_thread {
  std::uint16_t number = 0;  // event::thread
  std::int32_t id = 0;       // the system's
  std::string name;
};

struct recorded_schedule {
  std::uint64_t job = 0;
  std::uint32_t context = 0;
  std::shared_ptr<const schedule> runs;
  std::shared_ptr<const form> what;  // that it computes; nullptr: it was not planned from a form
  plan_request request;              // its device is the one that runs the schedule
  std::shared_ptr<const machine_model> machine;

  const device_model &model() const noexcept { return machine->device(request.device); }
};

struct recorded_machine {
  std::uint32_t context = 0;
  std::shared_ptr<const machine_model> model;
};

struct recording {
  std::int64_t start_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC
  std::vector<event> events;              // each thread's in order
  std::vector<recorded_thread> threads;
  std::vector<recorded_schedule> schedules;
  std::vector<recorded_machine> machines;
  std::uint64_t dropped = 0;  // events for which a ring, or the recording, had no room
};

}  // namespace sg::trace
