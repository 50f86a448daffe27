// SPDX-License-Identifier: Apache-2.0
// Simulated timelines as histories: recordings in which every command takes the time that the simulator gives it.
#include <cmath>
#include <cstdio>
#include <sstream>

#include "plan/schedule/describe.hpp"
#include "plan/schedule/simulate.hpp"
#include "trace/advice.hpp"
#include "trace/command_event.hpp"
#include "trace/history.hpp"

namespace sg::trace {

namespace {

std::int64_t ns_of(double seconds) noexcept { return std::llround(seconds * 1e9); }

void add_context(recording &to, std::uint32_t number, const std::string &device, bool is_virtual) {
  event made(event_kind::context, number, 0);
  std::snprintf(made.text, sizeof made.text, "%s", device.c_str());
  made.detail = is_virtual ? virtual_clock_bit : 0;
  to.events.push_back(made);
}

// Returns the length.
std::int64_t add_commands(recording &to, std::uint32_t context, std::uint64_t job, const schedule &s,
                          const machine_model &machine, std::int64_t start_ns) {
  const sg::timeline simulated = simulate(s, machine);
  for (std::size_t i = 0; i < s.commands.size(); ++i) {
    event e(event_kind::command, context, job);
    describe_command(e.body, s.buffers, s.commands[i]);
    e.body.start_ns = start_ns + ns_of(simulated.commands[i].start);
    e.body.end_ns = start_ns + ns_of(simulated.commands[i].end);
    e.body.lane = simulated.commands[i].where.index;
    e.body.index = static_cast<std::uint32_t>(i);
    to.events.push_back(e);
  }
  return ns_of(simulated.seconds);
}

// Lines of a name, spaces and a value.
std::vector<std::pair<std::string, std::string>> lines_of(const std::string &text) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::istringstream in(text);
  for (std::string name, value; in >> name >> std::ws && std::getline(in, value);) lines.emplace_back(name, value);
  return lines;
}

}  // namespace

history predicted_history_of(const recording &from, const history &measured) {
  recording made;
  made.end_ns = measured.span_ns;
  for (const traced_context &each : measured.contexts) add_context(made, each.number, each.device, false);
  for (const recorded_schedule &each : from.schedules) {
    const traced_job *job = measured.job(each.job);
    if (job && job->started_ns >= 0)
      add_commands(made, each.context, each.job, *each.runs, *each.machine, job->started_ns);
  }
  return history_of(made);
}

history history_of_plan(const recorded_schedule &planned) {
  recording made;
  add_context(made, planned.context, planned.model().name, true);
  made.end_ns = add_commands(made, planned.context, planned.job, *planned.runs, *planned.machine, 0);
  made.schedules.push_back(planned);
  history found = history_of(made);
  found.prediction = lines_of(describe_text(*planned.runs, *planned.machine));
  found.advices = advice_of(made, found);
  return found;
}

}  // namespace sg::trace
