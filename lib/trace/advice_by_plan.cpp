// SPDX-License-Identifier: Apache-2.0
// Recorded forms planned again in other ways.
#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/format.hpp"
#include "plan/planner.hpp"
#include "plan/schedule/describe.hpp"
#include "trace/advice.hpp"
#include "trace/interval_set.hpp"

namespace sg::trace {

namespace {

constexpr std::size_t most_schedules_examined = 64;  // each is planned some times, which may take 10 ms

// Jobs with equal schedules.
struct group {
  const recorded_schedule *first = nullptr;
  std::vector<time_interval> times;  // of each
};

std::string text_of(const recorded_schedule &of) { return of.what->describe(of.request) + ", " + of.runs->strategy; }

// A part of the time that the jobs took, those that overlapped together: so much as the prediction becomes shorter.
void add_advice(std::vector<advice> &to, const group &jobs, bool is_planned) {
  const recorded_schedule &now = *jobs.first;
  const double now_seconds = now.runs->predicted_seconds;
  const std::int64_t measured_ns = interval_set(jobs.times).length_ns();
  const auto add = [&](std::string title, double seconds, const std::string &then) {
    const std::string now_text = ns_text(static_cast<std::int64_t>(now_seconds * 1e9));
    const std::size_t count = jobs.times.size();
    std::string evidence =
        is_planned ? formatted("predicted %s for %s; %s", now_text.c_str(), text_of(now).c_str(), then.c_str())
                   : formatted("%zu job%s of %s took %s, predicted %s each; %s", count, count == 1 ? "" : "s",
                               text_of(now).c_str(), ns_text(measured_ns).c_str(), now_text.c_str(), then.c_str());
    to.push_back(
        {std::move(title), std::move(evidence), (now_seconds - seconds) / now_seconds * double(measured_ns) * 1e-9});
  };
  for (const alternative &each : now.what->alternatives(now.model(), now.request)) {
    double seconds = 0;
    try {
      seconds = make_plan(*each.what, now.model(), each.request)->predicted_seconds;
    } catch (const error &) {
      continue;  // the device cannot do that
    }
    if (now_seconds - seconds >= min_gain * now_seconds)
      add(each.title, seconds,
          ns_text(static_cast<std::int64_t>(seconds * 1e9)) + (is_planned ? " then" : " each then"));
  }
  const auto more = times_on_more_devices(*now.what, *now.machine, now.request, *now.runs);
  if (!more.empty())
    add(formatted("compute it on %d devices (sg_plan_options.device_count)", int(more.back().devices)),
        more.back().seconds, describe_more_devices(more));
}

}  // namespace

std::vector<advice> advice_by_plan(const recording &from, const history &measured) {
  std::vector<group> groups;
  std::map<std::pair<std::uint32_t, const schedule *>, std::size_t> group_of;
  const auto is_equal = [](const recorded_schedule &x, const recorded_schedule &y) {
    return x.context == y.context && x.request == y.request && *x.what == *y.what &&
           x.runs->strategy == y.runs->strategy;
  };
  for (const recorded_schedule &each : from.schedules) {
    const traced_job *job = measured.job(each.job);
    if (!each.what || !job || job->ended_ns < 0) continue;
    const auto [known, is_new] = group_of.emplace(std::pair{each.context, each.runs.get()}, groups.size());
    if (is_new) {
      const auto equal =
          std::find_if(groups.begin(), groups.end(), [&](const group &one) { return is_equal(*one.first, each); });
      known->second = static_cast<std::size_t>(equal - groups.begin());
      if (equal == groups.end() && groups.size() >= most_schedules_examined) {
        group_of.erase(known);
        continue;
      }
      if (equal == groups.end()) groups.push_back({&each, {}});
    }
    groups[known->second].times.push_back({job->started_ns, job->ended_ns});
  }
  std::vector<advice> made;
  for (const group &jobs : groups) add_advice(made, jobs, !measured.prediction.empty());
  return made;
}

}  // namespace sg::trace
