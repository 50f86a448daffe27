// SPDX-License-Identifier: Apache-2.0
#include "trace/history.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace sg::trace {

namespace {

const char *name_of_lane(lane_kind kind) noexcept {
  switch (kind) {
    case lane_kind::copy_in: return "copy in";
    case lane_kind::copy_out: return "copy out";
    case lane_kind::compute: return "compute";
    case lane_kind::staging: return "staging";
    case lane_kind::copy_peer: return "copy from peers";
  }
  return "lane";
}

// Builds the history of a recording, in two passes over its events.
class builder {
 public:
  explicit builder(const recording &from) : from_(from) {
    made_.span_ns = from.end_ns - from.start_ns;
    made_.dropped = from.dropped;
  }

  history build() {
    find_contexts();
    for (const event &each : from_.events) add(each);
    find_processors();
    place_in_lanes();
    finish_jobs();
    add_counters();
    order_tracks();
    return std::move(made_);
  }

 private:
  // Of what is on a device's clock: the context that it belongs to says where that clock begins.
  void find_contexts() {
    for (const event &each : from_.events) {
      const std::size_t index = context_of(each.context);
      if (each.kind == event_kind::context) {
        // A context that was made as the recording began may have its name twice.
        std::string &device = made_.contexts[index].device;
        if ((each.detail & 1) == 0) device.clear();
        device.append(each.text, strnlen(each.text, event_text_size));
        made_.contexts[index].is_virtual = (each.detail & virtual_clock_bit) != 0;
      } else if (each.kind == event_kind::command && each.body.end_ns != 0) {
        first_ns_[index] = std::min(first_ns_[index], each.body.start_ns);
      }
    }
  }

  // A recording is of this process, so of this machine.
  void find_processors() {
    for (const recorded_machine &each : from_.machines)
      for (traced_context &of : made_.contexts)
        if (of.number == each.context && each.model->device(first_device).lanes_are_cores && !of.is_virtual)
          of.processor = processor_name();
  }

  std::size_t context_of(std::uint32_t number) {
    const auto [at, is_new] = context_index_.emplace(number, made_.contexts.size());
    if (is_new) {
      made_.contexts.push_back({number, "", false});
      first_ns_.push_back(std::numeric_limits<std::int64_t>::max());
    }
    return at->second;
  }

  std::int64_t on_device(std::size_t context, std::int64_t ns) const noexcept {
    return made_.contexts[context].is_virtual ? ns - first_ns_[context] : ns - from_.start_ns;
  }
  std::int64_t on_host(std::int64_t ns) const noexcept { return ns - from_.start_ns; }

  // Commands of one lane may overlap, in virtual time or by as much as the host is late: each row shows one at a time.
  void place_in_lanes() {
    struct row {
      std::uint32_t track = 0;
      std::int64_t end_ns = 0;
    };
    std::map<std::tuple<std::size_t, lane_kind, std::uint16_t>, std::vector<row>> lanes;
    std::sort(in_lanes_.begin(), in_lanes_.end(), [&](const in_lane &x, const in_lane &y) {
      return made_.activities[x.activity].start_ns < made_.activities[y.activity].start_ns;
    });
    for (const in_lane &each : in_lanes_) {
      activity &placed = made_.activities[each.activity];
      auto &rows = lanes[{placed.context, each.kind, each.lane}];
      auto free = std::find_if(rows.begin(), rows.end(), [&](const row &x) { return x.end_ns <= placed.start_ns; });
      if (free == rows.end()) {
        std::string name = name_of_lane(each.kind);
        if (const unsigned device = device_of_lane(each.lane)) name += " of device " + std::to_string(device) + ",";
        name += " " + std::to_string(number_in_device(each.lane));
        if (!rows.empty()) name += " +" + std::to_string(rows.size());
        rows.push_back({static_cast<std::uint32_t>(made_.tracks.size()), 0});
        free = rows.end() - 1;
        made_.tracks.push_back({std::move(name), track_kind::device_lane, placed.context, each.kind});
      }
      free->end_ns = placed.end_ns;
      placed.track = free->track;
    }
  }

  std::uint32_t thread_track(std::uint16_t number) {
    const auto [at, is_new] = thread_tracks_.emplace(number, made_.tracks.size());
    if (is_new) {
      track made{"thread", track_kind::thread, no_context, lane_kind::staging};
      for (const recorded_thread &each : from_.threads)
        if (each.number == number) made.name = each.name + " " + std::to_string(each.id);
      made_.tracks.push_back(std::move(made));
    }
    return at->second;
  }

  traced_job &job_of(const event &of) {
    traced_job &found = jobs_[of.job];
    found.number = of.job;
    found.context = context_of(of.context);
    return found;
  }

  void add(const event &e) {
    switch (e.kind) {
      case event_kind::context: return;
      case event_kind::label: {
        std::string &label = job_of(e).label;
        label.append(e.text, strnlen(e.text, event_text_size));
        return;
      }
      case event_kind::trace_id: job_of(e).trace_id = e.body.value; return;
      case event_kind::memory: return memory_.push_back(e);
      case event_kind::completion: return complete(e);
      default: break;
    }
    if (is_from_before(e)) return;
    activity made;
    made.kind = e.kind;
    made.context = context_of(e.context);
    made.job = e.job;
    // Staging workers are lanes where the device's clock is the host's.
    const bool stages = e.kind == event_kind::staging && !made_.contexts[made.context].is_virtual;
    const bool in_lane = stages || (e.kind == event_kind::command && e.body.lane != no_lane);
    if (e.kind == event_kind::command) {
      made.start_ns = on_device(made.context, e.body.start_ns);
      made.end_ns = on_device(made.context, std::max(e.body.start_ns, e.body.end_ns));
    } else {
      made.start_ns = std::max<std::int64_t>(0, on_host(e.body.start_ns));
      made.end_ns = std::max(made.start_ns, on_host(e.body.end_ns));
    }
    if (e.kind == event_kind::command || e.kind == event_kind::staging) {
      made.operation = e.body.operation;
      made.bytes = e.body.value;
      made.m = e.body.m, made.n = e.body.n, made.k = e.body.k;
      made.count = std::max(1u, e.body.count);
    }
    if (in_lane)
      in_lanes_.push_back({made_.activities.size(), lane_kind(e.body.lane_kind), stages ? e.thread : e.body.lane});
    else
      made.track = thread_track(e.thread);
    if (e.kind == event_kind::submission) {
      traced_job &job = job_of(e);
      job.submitted_ns = made.start_ns;
      job.stream = std::int64_t{e.body.count} - 1;
      job.priority = std::int32_t{e.detail} - 1;
    } else if (e.kind == event_kind::command && e.job != 0) {
      traced_job &job = job_of(e);
      job.started_ns = job.started_ns < 0 ? made.start_ns : std::min(job.started_ns, made.start_ns);
      job.ended_ns = std::max(job.ended_ns, made.end_ns);
    }
    made_.activities.push_back(made);
  }

  // A thread that was about to write as an earlier recording ended writes into this one.
  bool is_from_before(const event &e) const noexcept {
    return e.kind != event_kind::command && e.body.end_ns < from_.start_ns;
  }

  void complete(const event &e) {
    traced_job &job = job_of(e);
    job.completed_ns = on_host(static_cast<std::int64_t>(e.body.value));
    job.status = e.body.index;
    job.batch_size = std::max(1u, e.body.count);
    if (e.body.end_ns == 0) return;
    job.started_ns = on_device(job.context, e.body.start_ns);
    job.ended_ns = on_device(job.context, e.body.end_ns);
  }

  void finish_jobs() {
    made_.jobs.reserve(jobs_.size());
    for (auto &[number, job] : jobs_) made_.jobs.push_back(std::move(job));
  }

  void add_counters() {
    for (std::size_t context = 0; context < made_.contexts.size(); ++context) {
      add_changes("jobs in flight", "jobs", context, [&](auto &&change) {
        for (const traced_job &job : made_.jobs) {
          if (job.context != context || job.submitted_ns < 0 || job.completed_ns < 0) continue;
          change(job.submitted_ns, 1.0);
          change(job.completed_ns, -1.0);
        }
      });
      for (const std::int32_t priority : {1, 0, -1}) {
        if (made_.contexts[context].is_virtual) break;  // its jobs start on another clock
        const char *const name = priority > 0   ? "queued, high priority"
                                 : priority < 0 ? "queued, low priority"
                                                : "queued";
        add_changes(name, "jobs", context, [&](auto &&change) {
          for (const traced_job &job : made_.jobs) {
            if (job.context != context || job.priority != priority || job.submitted_ns < 0) continue;
            if (job.started_ns <= job.submitted_ns) continue;
            change(job.submitted_ns, 1.0);
            change(job.started_ns, -1.0);
          }
        });
      }
      add_changes("bytes in flight", "bytes", context, [&](auto &&change) {
        for (const activity &each : made_.activities) {
          if (each.context != context || each.kind != event_kind::command || each.bytes == 0) continue;
          change(each.start_ns, double(each.bytes));
          change(each.end_ns, -double(each.bytes));
        }
      });
      for (const std::uint16_t which : {0, 1}) {
        counter memory{which == 0 ? "device memory" : "pinned memory", "bytes", context, {}};
        for (const event &each : memory_)
          if (context_of(each.context) == context && each.body.lane == which)
            memory.samples.push_back({std::max<std::int64_t>(0, on_host(each.body.start_ns)), double(each.body.value)});
        if (!memory.samples.empty()) made_.counters.push_back(std::move(memory));
      }
    }
  }

  template <class List>
  void add_changes(const char *name, const char *unit, std::size_t context, List &&list) {
    std::vector<sample> changes;
    list([&](std::int64_t at_ns, double by) { changes.push_back({at_ns, by}); });
    if (changes.empty()) return;
    std::stable_sort(changes.begin(), changes.end(),
                     [](const sample &x, const sample &y) { return x.at_ns < y.at_ns; });
    counter made{name, unit, context, {}};
    double value = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      value += changes[i].value;
      if (i + 1 == changes.size() || changes[i + 1].at_ns != changes[i].at_ns)
        made.samples.push_back({changes[i].at_ns, value});
    }
    made_.counters.push_back(std::move(made));
  }

  // Lanes by context and kind, then threads; activities by track and start.
  void order_tracks() {
    std::vector<std::uint32_t> order(made_.tracks.size()), place(made_.tracks.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto key = [&](std::uint32_t i) {
      const track &t = made_.tracks[i];
      return std::tuple(t.kind, t.context, t.lane, t.name.size(), t.name);
    };
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) { return key(x) < key(y); });
    std::vector<track> sorted;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.push_back(std::move(made_.tracks[order[i]]));
    }
    made_.tracks = std::move(sorted);
    for (activity &each : made_.activities) each.track = place[each.track];
    std::stable_sort(made_.activities.begin(), made_.activities.end(), [](const activity &x, const activity &y) {
      return std::tuple(x.track, x.start_ns, -x.end_ns) < std::tuple(y.track, y.start_ns, -y.end_ns);
    });
  }

  const recording &from_;
  history made_;
  std::map<std::uint32_t, std::size_t> context_index_;
  std::vector<std::int64_t> first_ns_;  // by context: of a command, on the device's clock
  struct in_lane {
    std::size_t activity;
    lane_kind kind;
    std::uint16_t lane;
  };
  std::vector<in_lane> in_lanes_;  // activities that have no track yet
  std::map<std::uint16_t, std::uint32_t> thread_tracks_;
  std::map<std::uint64_t, traced_job> jobs_;
  std::vector<event> memory_;
};

}  // namespace

std::span<const activity> history::of_track(std::size_t index) const noexcept {
  const auto first = std::partition_point(activities.begin(), activities.end(),
                                          [&](const activity &each) { return each.track < index; });
  const auto last =
      std::partition_point(first, activities.end(), [&](const activity &each) { return each.track <= index; });
  return {first, last};
}

const traced_job *history::job(std::uint64_t number) const noexcept {
  const auto found =
      std::partition_point(jobs.begin(), jobs.end(), [&](const traced_job &each) { return each.number < number; });
  return found != jobs.end() && found->number == number ? &*found : nullptr;
}

history history_of(const recording &from) { return builder(from).build(); }

}  // namespace sg::trace
