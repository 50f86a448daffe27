// SPDX-License-Identifier: Apache-2.0
#include "trace/summary.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "ops/operation.hpp"
#include "trace/exporters.hpp"

namespace sg::trace {

namespace {

std::string count_of(std::uint64_t number, const char *noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string share_of(std::int64_t part_ns, std::int64_t whole_ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", whole_ns > 0 ? 100 * double(part_ns) / double(whole_ns) : 0);
  return text;
}

// An operation's commands in one context.
struct operation_time {
  const char *name = "";
  std::uint64_t commands = 0;
  std::int64_t busy_ns = 0;  // at least one of them ran
};

operation_time longest_operation(const history &what, std::size_t context) {
  std::array<std::vector<time_interval>, operation_count + 1> times;  // the last: of unknown operations
  for (const activity &each : what.activities)
    if (each.kind == event_kind::command && each.context == context)
      times[std::min<std::size_t>(each.operation, operation_count)].push_back({each.start_ns, each.end_ns});
  operation_time longest;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::uint64_t commands = times[i].size();
    const std::int64_t busy_ns = interval_set(std::move(times[i])).length_ns();
    if (busy_ns > longest.busy_ns) longest = {name_of_operation(static_cast<std::uint8_t>(i)), commands, busy_ns};
  }
  return longest;
}

std::string time_sentence(const history &what, std::size_t context, const context_metrics &m) {
  const bool planned = !what.prediction.empty();
  const std::string commands = count_of(m.commands, "command"), title = title_of(what.contexts[context]);
  std::string text = planned       ? "Predicted, not run: " + commands + " of the schedule take "
                     : m.jobs == 0 ? commands + " took "
                     : m.failed_jobs == m.jobs
                         ? count_of(m.jobs, "job") + (m.jobs == 1 ? "" : ", all") + " failed after "
                         : count_of(m.jobs, "job") + " took ";
  text += ns_text(m.span_ns) + " on " + title;
  if (m.failed_jobs > 0 && m.failed_jobs < m.jobs) text += " (" + std::to_string(m.failed_jobs) + " failed)";
  const operation_time longest = longest_operation(what, context);
  if (longest.busy_ns > 0)
    text += std::string("; ") + longest.name + (planned ? " runs " : " ran ") + ns_text(longest.busy_ns) +
            " of that, in " + count_of(longest.commands, "command");
  return text + ".";
}

// Of causes of idle compute lanes: what they make the limit, and what the lanes did.
struct cause_words {
  const char *limit, *waited;
};
constexpr std::array<cause_words, idle_causes> words_of_causes{{
    {"Copies limit", "waited for copies"},
    {"Staging limits", "waited for staging between pageable and pinned memory"},
    {"Submission limits", "waited for calls that were submitting or planning"},
    {"Dispatch limits", "waited for the next command of a job in flight"},
    {"The program limits", "had no job"},
}};

// The largest part of the time, and the largest of the others.
std::string limit_sentence(const context_metrics &m) {
  const auto largest = std::max_element(m.idle_ns.begin(), m.idle_ns.end());
  const cause_words &words = words_of_causes[static_cast<std::size_t>(largest - m.idle_ns.begin())];
  const std::string worked = "worked " + share_of(m.compute_ns, m.span_ns) + " of the time";
  const std::string waited = words.waited + (" " + share_of(*largest, m.span_ns));
  if (*largest == 0) return "Arithmetic limits: the compute lanes " + worked + ".";
  if (m.compute_ns > *largest) return "Arithmetic limits: the compute lanes " + worked + " and " + waited + ".";
  return std::string(words.limit) + ": the compute lanes " + waited + " of the time and worked " +
         share_of(m.compute_ns, m.span_ns) + ".";
}

std::string change_sentence(const history &what, const context_metrics &m, bool is_virtual) {
  if (what.advices.empty())
    return "No advice: nothing that the library knows to change gains 3% or more by the device's model.";
  const advice &first = what.advices.front();
  const auto gain_ns = static_cast<std::int64_t>(first.gain_seconds * 1e9);
  if (gain_ns == 0) return "As fast, and simpler: " + first.title + ".";
  const std::string gain = ns_text(gain_ns) + " of " + ns_text(m.span_ns);
  if (!what.prediction.empty()) return "To save a predicted " + gain + ": " + first.title + ".";
  if (is_virtual)
    return "To save " + gain + " on this simulated device, to be measured on a real one: " + first.title + ".";
  return "To save about " + gain + ", by the device's model: " + first.title + ".";
}

}  // namespace

summary summary_of(const history &what, const std::vector<context_metrics> &metrics) {
  const auto longest =
      std::max_element(metrics.begin(), metrics.end(),
                       [](const context_metrics &x, const context_metrics &y) { return x.span_ns < y.span_ns; });
  if (longest == metrics.end() || longest->commands == 0) return {"No command ran on a device.", "", ""};
  const auto context = static_cast<std::size_t>(longest - metrics.begin());
  return {time_sentence(what, context, *longest), limit_sentence(*longest),
          change_sentence(what, *longest, what.contexts[context].is_virtual)};
}

}  // namespace sg::trace
