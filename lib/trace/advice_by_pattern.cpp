// SPDX-License-Identifier: Apache-2.0
// Costly patterns of jobs, and the simulated time without them: small copies, a thread that waits for each of its jobs,
// jobs that run one after another, more streams than help, calls in an order that holds up others.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "base/format.hpp"
#include "ops/copy.hpp"
#include "plan/schedule/merged.hpp"
#include "plan/schedule/simulate.hpp"
#include "trace/advice.hpp"
#include "trace/call_order.hpp"
#include "trace/interval_set.hpp"

namespace sg::trace {

namespace {

constexpr std::size_t min_jobs = 4;            // of a pattern
constexpr std::size_t min_copies = 8;          // of small ones
constexpr std::size_t max_simulated = 20'000;  // commands
constexpr double small_copy = 4;               // a copy is small if it takes less than so many times its latency

// What a job did on its device.
struct job_work {
  const traced_job *job = nullptr;
  std::size_t commands = 0;
  std::array<std::vector<time_interval>, lane_kinds> by_lane;
  const activity *only = nullptr;  // its command, if it has one
  bool fills_device = true;        // each of its GEMMs does
  bool in_wait_loop = false;

  std::int64_t duration_ns() const noexcept { return job->ended_ns - job->started_ns; }
  interval_set times() const {
    std::vector<time_interval> all;
    for (const auto &each : by_lane) all.insert(all.end(), each.begin(), each.end());
    return interval_set(std::move(all));
  }
};

class patterns {
 public:
  patterns(const recording &from, const history &measured, std::size_t context, const device_model &model)
      : from_(measured), context_(context), model_(model) {
    for (const recorded_schedule &each : from.schedules) schedules_.emplace(each.job, each.runs);
    collect();
  }

  std::vector<advice> find() {
    if (!model_.unified_memory) {
      find_small_copies(lane_kind::copy_in, model_.link_in, "to");
      find_small_copies(lane_kind::copy_out, model_.link_out, "from");
    }
    find_wait_loops();
    find_serial_jobs();
    find_idle_streams();
    if (are_shared(model_.queues)) find_call_order();
    return std::move(found_);
  }

 private:
  void collect() {
    std::unordered_map<std::uint64_t, std::size_t> index;
    for (const activity &each : from_.activities) {
      if (each.kind != event_kind::command || each.context != context_ || each.job == 0) continue;
      const track &where = from_.tracks[each.track];
      const lane_kind lane = where.kind == track_kind::device_lane ? where.lane : lane_kind::compute;
      const auto [at, is_new] = index.emplace(each.job, works_.size());
      if (is_new) works_.push_back({from_.job(each.job)});
      job_work &work = works_[at->second];
      ++work.commands;
      work.only = work.commands == 1 ? &each : nullptr;
      work.by_lane[static_cast<std::size_t>(lane)].push_back({each.start_ns, each.end_ns});
      if (each.m != 0) {
        const double tiles = double((each.m + model_.tile_m - 1) / model_.tile_m) *
                             double((each.n + model_.tile_n - 1) / model_.tile_n) * double(each.count);
        work.fills_device = work.fills_device && tiles >= double(model_.units);
      } else if (lane == lane_kind::compute) {
        work.fills_device = false;  // unknown
      }
    }
    std::erase_if(works_, [](const job_work &each) { return !each.job || each.job->submitted_ns < 0; });
    std::sort(works_.begin(), works_.end(), [](const job_work &x, const job_work &y) {
      return std::pair(x.job->started_ns, x.job->number) < std::pair(y.job->started_ns, y.job->number);
    });
  }

  void add(const char *title, std::string evidence, double gain_ns) {
    found_.push_back({title, std::move(evidence), gain_ns * 1e-9});
  }

  void find_small_copies(lane_kind lane, double rate, const char *direction) {
    const double latency = std::max(model_.copy_latency, model_.copy_gap);
    std::vector<time_interval> times;
    std::uint64_t bytes = 0;
    for (const job_work &each : works_) {
      const auto &own = each.by_lane[static_cast<std::size_t>(lane)];
      if (!each.only || own.empty() || double(each.only->bytes) / rate > small_copy * latency) continue;
      times.push_back(own.front());
      bytes += each.only->bytes;
    }
    if (times.size() < min_copies) return;
    const std::size_t count = times.size();
    const std::int64_t now_ns = interval_set(std::move(times)).length_ns();
    const auto all = static_cast<std::int64_t>(bytes);
    const bool to_device = lane == lane_kind::copy_in;
    const double then_ns = 1e9 * (model_.copy_latency + copy_seconds(model_, {all, 1, all, all, to_device}, false));
    if (double(now_ns) - then_ns < min_gain * double(now_ns)) return;
    add("copy more at a time: the copies are so small that their latency dominates",
        formatted("%zu copies %s the device, of %s on average, took %s; one of %s takes %s", count, direction,
                  bytes_text(bytes / count).c_str(), ns_text(now_ns).c_str(), bytes_text(bytes).c_str(),
                  ns_text(static_cast<std::int64_t>(then_ns)).c_str()),
        double(now_ns) - then_ns);
  }

  // The schedule of a job: as it was recorded, or of one copy. nullptr: unknown.
  std::shared_ptr<const schedule> schedule_of(const job_work &work) const {
    if (const auto found = schedules_.find(work.job->number); found != schedules_.end()) return found->second;
    if (!work.only || work.only->bytes == 0) return nullptr;
    const bool in = !work.by_lane[static_cast<std::size_t>(lane_kind::copy_in)].empty();
    const bool out = !work.by_lane[static_cast<std::size_t>(lane_kind::copy_out)].empty();
    if (!in && !out) return nullptr;
    auto made = std::make_shared<schedule>();
    const auto bytes = static_cast<std::int64_t>(work.only->bytes);
    buffer host{.type = SG_DTYPE_I8, .space = SG_MEMORY_PINNED, .bytes = bytes}, device = host;
    device.space = memory_space::of_device(first_device);
    made->buffers = {host, device};
    command copy;
    copy.what = in ? payload(ops::copy_in{}) : payload(ops::copy_out{});
    copy.where = lane(in ? lane_kind::copy_in : lane_kind::copy_out, 0);
    copy.views[ops::copy_in::to] = view{.buffer = in ? 1 : 0, .ld = bytes, .rows = bytes, .cols = 1};
    copy.views[ops::copy_in::from] = view{.buffer = in ? 0 : 1, .ld = bytes, .rows = bytes, .cols = 1};
    copy.views[ops::copy_in::to].mode = access_mode::write;
    copy.views[ops::copy_in::from].mode = access_mode::read;
    made->commands = {copy};
    made->lanes[static_cast<int>(copy.where.kind)] = 1;
    return made;
  }

  // In which order jobs of one chain follow each other: copies to the device, GEMMs, copies from it.
  static int stage_of(const job_work &work) noexcept {
    const auto uses = [&](lane_kind lane) { return !work.by_lane[static_cast<std::size_t>(lane)].empty(); };
    if (work.commands > 1 || uses(lane_kind::compute)) return 1;
    return uses(lane_kind::copy_in) ? 0 : 2;
  }

  // The simulated time of these jobs if chains of them ran side by side, on lanes that are as slow as they were
  // measured; 0: unknown.
  double side_by_side_ns(const std::vector<const job_work *> &jobs) const {
    merged_schedule all;
    std::array<double, lane_kinds> measured_ns{}, simulated_ns{};  // times of all commands
    int stage = 3;
    std::int64_t last = merged_schedule::nothing;
    for (const job_work *each : jobs) {
      const auto own = schedule_of(*each);
      if (!own || all.whole().commands.size() > max_simulated) return 0;
      const int next = stage_of(*each);
      const bool is_copy = next != 1;
      last = all.append(*own, next > stage || (next == stage && is_copy) ? last : merged_schedule::nothing);
      stage = next;
      for (const interval &command : simulate(*own, model_).commands)
        simulated_ns[static_cast<std::size_t>(command.where.kind)] += (command.end - command.start) * 1e9;
      for (std::size_t kind = 0; kind < measured_ns.size(); ++kind)
        for (const time_interval &command : each->by_lane[kind])
          measured_ns[kind] += double(command.end_ns - command.start_ns);
    }
    double slowness = 1;
    for (std::size_t kind = 0; kind < measured_ns.size(); ++kind)
      if (simulated_ns[kind] > 0) slowness = std::max(slowness, measured_ns[kind] / simulated_ns[kind]);
    return simulate(all.whole(), model_).seconds * 1e9 * slowness;
  }

  // A thread that submits a job, waits for it, and so on.
  void find_wait_loops() {
    std::unordered_map<std::uint64_t, job_work *> work_of;
    for (job_work &each : works_) work_of.emplace(each.job->number, &each);
    for (std::size_t t = 0; t < from_.tracks.size(); ++t) {
      if (from_.tracks[t].kind != track_kind::thread) continue;
      std::vector<const job_work *> loop;
      job_work *latest = nullptr;
      const auto end_loop = [&] {
        report_loop(loop);
        loop.clear();
        latest = nullptr;
      };
      for (const activity &each : from_.of_track(t)) {
        if (each.context != context_) continue;
        if (each.kind == event_kind::submission) {
          if (latest) end_loop();  // two submissions without a wait
          const auto found = work_of.find(each.job);
          latest = found == work_of.end() ? nullptr : found->second;
          if (!latest) end_loop();
        } else if (each.kind == event_kind::wait && latest && (each.job == 0 || each.job == latest->job->number)) {
          loop.push_back(std::exchange(latest, nullptr));
        }
      }
      end_loop();
    }
  }

  void report_loop(const std::vector<const job_work *> &loop) {
    if (loop.size() < min_jobs) return;
    const std::int64_t now_ns = loop.back()->job->ended_ns - loop.front()->job->started_ns;
    const double then_ns = side_by_side_ns(loop);
    for (const job_work *each : loop) const_cast<job_work *>(each)->in_wait_loop = true;
    if (then_ns == 0 || double(now_ns) - then_ns < min_gain * double(now_ns)) return;
    add("submit several jobs before you wait: the host waits for each one",
        formatted("%zu jobs, each followed by a wait, took %s; side by side they take %s", loop.size(),
                  ns_text(now_ns).c_str(), ns_text(static_cast<std::int64_t>(then_ns)).c_str()),
        double(now_ns) - then_ns);
  }

  // Jobs of streams that ran one after another although the next one had been submitted.
  void find_serial_jobs() {
    std::vector<const job_work *> serial;
    std::set<std::int64_t> streams;
    for (const job_work &each : works_) {
      if (each.in_wait_loop || each.job->stream < 0) continue;
      if (!serial.empty()) {
        const job_work &before = *serial.back();
        const bool overlaps = each.job->started_ns < before.job->ended_ns - before.duration_ns() / 20;
        const bool late = !from_.contexts[context_].is_virtual && each.job->submitted_ns > before.job->ended_ns;
        if (overlaps || late) {
          report_serial(serial, streams.size());
          serial.clear();
          streams.clear();
        }
      }
      serial.push_back(&each);
      streams.insert(each.job->stream);
    }
    report_serial(serial, streams.size());
  }

  void report_serial(const std::vector<const job_work *> &jobs, std::size_t streams) {
    if (jobs.size() < min_jobs) return;
    const std::int64_t now_ns = jobs.back()->job->ended_ns - jobs.front()->job->started_ns;
    const double then_ns = side_by_side_ns(jobs);
    if (then_ns == 0 || double(now_ns) - then_ns < min_gain * double(now_ns)) return;
    add(streams == 1 ? "put jobs that do not need each other on several streams"
                     : "let the streams run side by side: give each memory of its own, and drop what orders them",
        formatted("%zu jobs of %zu stream%s ran one after another in %s; side by side they take %s", jobs.size(),
                  streams, streams == 1 ? "" : "s", ns_text(now_ns).c_str(),
                  ns_text(static_cast<std::int64_t>(then_ns)).c_str()),
        double(now_ns) - then_ns);
  }

  // Streams whose GEMMs keep the device busy, where each alone would.
  void find_idle_streams() {
    std::set<std::int64_t> streams;
    std::vector<time_interval> times;
    for (const job_work &each : works_) {
      const auto &compute = each.by_lane[static_cast<std::size_t>(lane_kind::compute)];
      if (each.job->stream < 0 || compute.empty() || compute.size() != each.commands) continue;
      if (!each.fills_device) return;
      streams.insert(each.job->stream);
      times.insert(times.end(), compute.begin(), compute.end());
    }
    if (streams.size() < 3 || times.size() < min_jobs || model_.lanes_are_cores) return;
    const std::size_t count = times.size();
    const interval_set busy(std::move(times));
    if (busy.intervals().empty()) return;
    const std::int64_t span_ns = busy.intervals().back().end_ns - busy.intervals().front().start_ns;
    if (double(busy.length_ns()) < 0.9 * double(span_ns)) return;  // then streams may fill the gaps
    add("use fewer streams for these GEMMs: each fills the device",
        formatted("%zu GEMMs of %zu streams kept the device busy for %s of %s; one stream is as fast", count,
                  streams.size(), ns_text(busy.length_ns()).c_str(), ns_text(span_ns).c_str()),
        0);
  }

  void find_call_order() {
    std::vector<const job_work *> jobs;
    for (const job_work &each : works_)
      if (each.job->stream >= 0) jobs.push_back(&each);
    std::stable_sort(jobs.begin(), jobs.end(), [](const job_work *x, const job_work *y) {
      return std::pair(x->job->submitted_ns, x->job->number) < std::pair(y->job->submitted_ns, y->job->number);
    });
    std::vector<device_call> calls;
    std::map<std::int64_t, std::size_t> streams;
    for (const job_work *each : jobs) {
      auto work = schedule_of(*each);
      if (!work || calls.size() * work->commands.size() > max_simulated) return;
      const std::size_t stream = streams.emplace(each->job->stream, streams.size()).first->second;
      calls.push_back({std::move(work), stream, stage_of(*each)});
    }
    if (calls.size() < min_jobs) return;
    if (auto better = better_call_order(std::move(calls), model_)) found_.push_back(std::move(*better));
  }

  const history &from_;
  const std::size_t context_;
  const device_model &model_;
  std::unordered_map<std::uint64_t, std::shared_ptr<const schedule>> schedules_;  // by job
  std::vector<job_work> works_;                                                   // by start
  std::vector<advice> found_;
};

}  // namespace

std::vector<advice> advice_by_pattern(const recording &from, const history &measured) {
  std::vector<advice> all;
  for (const recorded_machine &each : from.machines)
    for (std::size_t context = 0; context < measured.contexts.size(); ++context)
      if (measured.contexts[context].number == each.context)
        for (advice &found : patterns(from, measured, context, each.model->device(first_device)).find())
          all.push_back(std::move(found));
  return all;
}

}  // namespace sg::trace
