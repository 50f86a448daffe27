// SPDX-License-Identifier: Apache-2.0
#include "trace/metrics.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "ops/command.hpp"

namespace sg::trace {

namespace {

// When commands of such jobs ran. A job of a batch has no command of its own: its time is the batch's.
template <class Wanted>
interval_set times_of_jobs(const history &from, Wanted &&wanted) {
  std::vector<time_interval> found;
  for (const activity &each : from.activities) {
    const traced_job *job = each.kind == event_kind::command ? from.job(each.job) : nullptr;
    if (job && wanted(*job)) found.push_back({each.start_ns, each.end_ns});
  }
  for (const traced_job &each : from.jobs)
    if (each.batch_size > 1 && wanted(each)) found.push_back({each.started_ns, each.ended_ns});
  return interval_set(std::move(found));
}

// The lane kind of a command: that of its track, or, on the submitting thread, compute.
lane_kind lane_of(const history &from, const activity &command) noexcept {
  const track &where = from.tracks[command.track];
  return where.kind == track_kind::device_lane ? where.lane : lane_kind::compute;
}

latency latency_of(std::vector<std::int64_t> all) {
  if (all.empty()) return {};
  std::sort(all.begin(), all.end());
  // The smallest one that so many percent do not exceed.
  const auto at = [&](std::size_t percent) { return all[(all.size() * percent + 99) / 100 - 1]; };
  return {at(50), at(90), at(99), all.back()};
}

// Gives each instant of `idle` to the first cause that holds.
void explain(context_metrics &out, interval_set idle, const std::array<interval_set, idle_causes> &causes) {
  const auto add = [&](idle_cause cause, const interval_set &times) {
    out.idle_ns[static_cast<std::size_t>(cause)] = times.length_ns();
    for (const time_interval &each : times.intervals()) out.gaps.push_back({each.start_ns, each.end_ns, cause});
  };
  for (const idle_cause cause : {idle_cause::link, idle_cause::staging, idle_cause::submission, idle_cause::dispatch}) {
    const interval_set &times = causes[static_cast<std::size_t>(cause)];
    add(cause, idle.and_also(times));
    idle = idle.without(times);
  }
  add(idle_cause::no_work, idle);
  const auto last = out.gaps.begin() + static_cast<std::ptrdiff_t>(std::min(out.gaps.size(), most_gaps));
  std::partial_sort(out.gaps.begin(), last, out.gaps.end(), [](const idle_gap &x, const idle_gap &y) {
    return std::pair(y.end_ns - y.start_ns, x.start_ns) < std::pair(x.end_ns - x.start_ns, y.start_ns);
  });
  out.gaps.erase(last, out.gaps.end());
}

// Times of commands of a device, by kind of lane.
struct device_times {
  std::array<std::vector<time_interval>, lane_kinds> by_lane;
  std::array<std::uint64_t, lane_kinds> bytes{};
  std::uint64_t commands = 0;
  std::int64_t command_ns = 0, first_ns = std::numeric_limits<std::int64_t>::max(), last_ns = 0;

  void add(lane_kind lane, time_interval when, std::uint64_t moved) {
    by_lane[static_cast<std::size_t>(lane)].push_back(when);
    bytes[static_cast<std::size_t>(lane)] += moved;
    ++commands;
    command_ns += when.end_ns - when.start_ns;
    first_ns = std::min(first_ns, when.start_ns);
    last_ns = std::max(last_ns, when.end_ns);
  }
  interval_set of(std::initializer_list<lane_kind> lanes) const {
    std::vector<time_interval> all;
    for (const lane_kind lane : lanes) {
      const auto &some = by_lane[static_cast<std::size_t>(lane)];
      all.insert(all.end(), some.begin(), some.end());
    }
    return interval_set(std::move(all));
  }
};

}  // namespace

const char *name_of(idle_cause cause) noexcept {
  switch (cause) {
    case idle_cause::link: return "link";
    case idle_cause::staging: return "staging";
    case idle_cause::submission: return "submission";
    case idle_cause::dispatch: return "dispatch";
    case idle_cause::no_work: return "no work";
  }
  return "unknown";
}

double context_metrics::overlap_efficiency() const noexcept {
  return transfer_ns > 0 ? 1 - double(exposed_ns) / double(transfer_ns) : 1;
}

double context_metrics::parallelism() const noexcept { return span_ns > 0 ? double(command_ns) / double(span_ns) : 0; }

context_metrics metrics_of_context(const history &from, std::size_t context, std::int64_t stream) {
  context_metrics m;
  const auto is_counted = [&](const traced_job *job) {
    return job && job->context == context && (stream < 0 || job->stream == stream);
  };
  std::vector<std::int64_t> latencies;
  std::vector<time_interval> in_flight;
  for (const traced_job &job : from.jobs) {
    // Otherwise a child of a graph's run, or submitted before the recording.
    if (!is_counted(&job) || job.submitted_ns < 0) continue;
    ++m.jobs;
    m.failed_jobs += job.status != 0 ? 1 : 0;
    if (job.completed_ns < 0) continue;
    latencies.push_back(job.completed_ns - job.submitted_ns);
    in_flight.push_back({job.submitted_ns, job.completed_ns});
  }
  m.of_jobs = latency_of(std::move(latencies));

  device_times times;
  for (const activity &each : from.activities)
    if (each.kind == event_kind::command && each.context == context && (stream < 0 || is_counted(from.job(each.job))))
      times.add(lane_of(from, each), {each.start_ns, each.end_ns}, each.bytes);
  // A job of a batch has no command of its own: its time is the batch's.
  for (const traced_job &job : from.jobs)
    if (stream >= 0 && job.batch_size > 1 && is_counted(&job) && job.ended_ns >= 0)
      times.add(lane_kind::compute, {job.started_ns, job.ended_ns}, 0);
  if (times.commands == 0) return m;
  m.commands = times.commands;
  m.command_ns = times.command_ns;
  m.bytes_in = times.bytes[static_cast<std::size_t>(lane_kind::copy_in)];
  m.bytes_out = times.bytes[static_cast<std::size_t>(lane_kind::copy_out)];
  m.start_ns = times.first_ns;
  m.span_ns = times.last_ns - times.first_ns;

  const interval_set compute = times.of({lane_kind::compute});
  const interval_set transfers = times.of({lane_kind::copy_in, lane_kind::copy_out, lane_kind::copy_peer});
  m.busy_ns = times.of({lane_kind::copy_in, lane_kind::copy_out, lane_kind::copy_peer, lane_kind::compute}).length_ns();
  m.compute_ns = compute.length_ns();
  m.copy_in_ns = times.of({lane_kind::copy_in}).length_ns();
  m.copy_out_ns = times.of({lane_kind::copy_out}).length_ns();
  m.transfer_ns = transfers.length_ns();
  m.exposed_ns = transfers.without(compute).length_ns();

  // What threads did for these jobs, or for none that is known.
  const auto on_host = [&](auto &&wanted) {
    std::vector<time_interval> found;
    for (const activity &each : from.activities)
      if (each.context == context && wanted(each.kind) && (each.job == 0 || is_counted(from.job(each.job))))
        found.push_back({each.start_ns, each.end_ns});
    return interval_set(std::move(found));
  };
  const interval_set span({{times.first_ns, times.last_ns}});
  std::array<interval_set, idle_causes> causes;
  const auto cause = [&](idle_cause which) -> interval_set & { return causes[static_cast<std::size_t>(which)]; };
  cause(idle_cause::link) = transfers;
  // Threads have the world's clock, which says nothing about a virtual one.
  if (from.contexts[context].is_virtual) {
    cause(idle_cause::staging) = times.of({lane_kind::staging});  // lanes of a schedule that has not run
    m.staging_ns = cause(idle_cause::staging).length_ns();
    cause(idle_cause::dispatch) = span;
  } else {
    const interval_set staging = on_host([](event_kind kind) { return kind == event_kind::staging; });
    m.staging_ns = staging.length_ns();
    cause(idle_cause::staging) = staging;
    cause(idle_cause::submission) =
        on_host([](event_kind kind) { return kind == event_kind::submission || kind == event_kind::planning; });
    cause(idle_cause::dispatch) = interval_set(std::move(in_flight));
  }
  explain(m, span.without(compute), causes);
  return m;
}

std::vector<context_metrics> metrics_of(const history &from) {
  std::vector<context_metrics> made;
  for (std::size_t context = 0; context < from.contexts.size(); ++context)
    made.push_back(metrics_of_context(from, context));
  return made;
}

std::int64_t overlap_of_jobs_ns(const history &from, std::uint64_t first, std::uint64_t second) {
  const auto of = [&](std::uint64_t job) {
    return times_of_jobs(from, [&](const traced_job &x) { return x.number == job; });
  };
  return of(first).and_also(of(second)).length_ns();
}

std::int64_t overlap_of_streams_ns(const history &from, std::int64_t first, std::int64_t second) {
  const auto of = [&](std::int64_t stream) {
    return times_of_jobs(from, [&](const traced_job &x) { return x.stream == stream; });
  };
  return of(first).and_also(of(second)).length_ns();
}

}  // namespace sg::trace
