// SPDX-License-Identifier: Apache-2.0
#include "run/objects/trace_session.hpp"

#include "run/job/process.hpp"
#include "trace/recorder.hpp"

namespace sg {

trace_session::trace_session(std::uint64_t max_events, bool device_times) : object(object_type::trace) {
  trace::start_recording(max_events, device_times);
  record_names_of_homes();
}

trace_session::~trace_session() { stop(); }

void trace_session::stop() noexcept {
  const std::lock_guard held(lock_);
  if (stopped_) return;
  stopped_ = true;
  const bool device_times = trace::wants_device_times();
  recording_ = trace::stop_recording();
  if (device_times) end_recording_of_homes();
}

const trace::recording &trace_session::recorded() {
  stop();
  const std::lock_guard held(lock_);
  if (!recording_) recording_ = std::make_shared<trace::recording>();
  return *recording_;
}

const trace::history &trace_session::seen() {
  const trace::recording &from = recorded();
  const std::lock_guard held(lock_);
  if (!history_) history_ = std::make_unique<const trace::history>(trace::history_of(from));
  return *history_;
}

}  // namespace sg
