// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "base/json_writer.hpp"
#include "trace/exporters.hpp"
#include "trace/metrics.hpp"

namespace sg::trace {

namespace {

constexpr std::int64_t threads_pid = 0;

double us(std::int64_t ns) noexcept { return double(ns) * 1e-3; }

class writer {
 public:
  explicit writer(const history &what) : what_(what) {}

  std::string write() {
    json_.member("displayTimeUnit", "ns");
    json_.begin("otherData");
    json_.member("producer", "StreamGEMM");
    json_.member("dropped_events", static_cast<std::int64_t>(what_.dropped));
    add_figures();
    json_.begin_list("advice");
    for (const advice &each : what_.advices) {
      json_.begin_item();
      json_.member("title", each.title);
      json_.member("evidence", each.evidence);
      json_.member("gain_seconds", each.gain_seconds);
      json_.end();
    }
    json_.end_list();
    json_.end();
    json_.begin_list("traceEvents");
    name_tracks();
    for (const activity &each : what_.activities) add(each);
    for (const counter &each : what_.counters) add(each);
    json_.end_list();
    return json_.take();
  }

 private:
  std::int64_t pid_of(const track &of) const noexcept {
    return of.context == no_context ? threads_pid : std::int64_t{what_.contexts[of.context].number};
  }

  void add_figures() {
    const std::vector<context_metrics> all = metrics_of(what_);
    json_.begin_list("contexts");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const context_metrics &m = all[i];
      const auto seconds = [](std::int64_t ns) { return double(ns) * 1e-9; };
      json_.begin_item();
      json_.member("device", title_of(what_.contexts[i]));
      json_.member("jobs", static_cast<std::int64_t>(m.jobs));
      json_.member("failed_jobs", static_cast<std::int64_t>(m.failed_jobs));
      json_.member("commands", static_cast<std::int64_t>(m.commands));
      json_.member("bytes_in", static_cast<std::int64_t>(m.bytes_in));
      json_.member("bytes_out", static_cast<std::int64_t>(m.bytes_out));
      json_.member("span_seconds", seconds(m.span_ns));
      json_.member("compute_seconds", seconds(m.compute_ns));
      json_.member("transfer_seconds", seconds(m.transfer_ns));
      json_.member("staging_seconds", seconds(m.staging_ns));
      json_.member("overlap_efficiency", m.overlap_efficiency());
      json_.member("parallelism", m.parallelism());
      json_.begin("idle_seconds");
      for (std::size_t cause = 0; cause < idle_causes; ++cause)
        json_.member(name_of(static_cast<idle_cause>(cause)), seconds(m.idle_ns[cause]));
      json_.end();
      json_.begin_list("longest_gaps");
      for (const idle_gap &each : m.gaps) {
        json_.begin_item();
        json_.member("cause", name_of(each.cause));
        json_.member("start_us", us(each.start_ns));
        json_.member("seconds", seconds(each.end_ns - each.start_ns));
        json_.end();
      }
      json_.end_list();
      json_.end();
    }
    json_.end_list();
  }

  void begin(const char *phase, const std::string &name, std::int64_t pid, std::int64_t tid) {
    json_.begin_item();
    json_.member("ph", phase);
    json_.member("name", name);
    json_.member("pid", pid);
    json_.member("tid", tid);
  }

  void metadata(const char *key, const std::string &value, std::int64_t pid, std::int64_t tid) {
    begin("M", key, pid, tid);
    json_.begin("args");
    json_.member("name", value);
    json_.end();
    json_.end();
  }

  void name_tracks() {
    metadata("process_name", "threads", threads_pid, 0);
    for (const traced_context &each : what_.contexts) metadata("process_name", title_of(each), each.number, 0);
    for (std::size_t i = 0; i < what_.tracks.size(); ++i) {
      const auto tid = static_cast<std::int64_t>(i) + 1;
      metadata("thread_name", what_.tracks[i].name, pid_of(what_.tracks[i]), tid);
      begin("M", "thread_sort_index", pid_of(what_.tracks[i]), tid);
      json_.begin("args");
      json_.member("sort_index", tid);
      json_.end();
      json_.end();
    }
  }

  void add(const activity &a) {
    const track &where = what_.tracks[a.track];
    const std::int64_t pid = pid_of(where), tid = std::int64_t{a.track} + 1;
    const traced_job *job = what_.job(a.job);
    begin("X", a.name(), pid, tid);
    json_.member("cat", job && !job->label.empty() ? job->label : std::string("streamgemm"));
    json_.member("ts", us(a.start_ns));
    json_.member("dur", us(a.end_ns - a.start_ns));
    json_.begin("args");
    if (job) json_.member("job", static_cast<std::int64_t>(shown_number(what_, a.job)));
    if (job && !job->label.empty()) json_.member("label", job->label);
    // A text, because JavaScript's numbers have 53 bits.
    if (job && job->trace_id != 0) json_.member("trace_id", std::to_string(job->trace_id));
    if (a.bytes != 0) json_.member("bytes", static_cast<std::int64_t>(a.bytes));
    if (a.m != 0) {
      json_.member("m", std::int64_t{a.m});
      json_.member("n", std::int64_t{a.n});
      json_.member("k", std::int64_t{a.k});
      json_.member("flops", 2.0 * double(a.m) * double(a.n) * double(a.k) * double(a.count));
    }
    if (a.count > 1) json_.member("batch_size", std::int64_t{a.count});
    json_.end();
    json_.end();
    add_flow(a, job, pid, tid);
  }

  // An arrow from the submission of a job to its first command.
  void add_flow(const activity &a, const traced_job *job, std::int64_t pid, std::int64_t tid) {
    if (!job) return;
    const bool starts = a.kind == event_kind::submission;
    const bool ends = a.kind == event_kind::command && a.start_ns == job->started_ns;
    if (!starts && !ends) return;
    begin(starts ? "s" : "f", "job", pid, tid);
    json_.member("cat", "job");
    json_.member("id", std::to_string(shown_number(what_, a.job)));
    json_.member("ts", us(a.start_ns));
    if (ends) json_.member("bp", "e");
    json_.end();
  }

  void add(const counter &c) {
    for (const sample &each : c.samples) {
      begin("C", c.name, what_.contexts[c.context].number, 0);
      json_.member("ts", us(each.at_ns));
      json_.begin("args");
      json_.member(c.unit, each.value);
      json_.end();
      json_.end();
    }
  }

  const history &what_;
  json_writer json_;
};

}  // namespace

std::size_t shown_number(const history &what, std::uint64_t job) noexcept {
  const traced_job *found = what.job(job);
  return found ? static_cast<std::size_t>(found - what.jobs.data()) + 1 : 0;
}

std::string title_of(const traced_context &context) {
  std::string device = context.device.empty() ? "context " + std::to_string(context.number) : context.device;
  if (!context.processor.empty()) device += ", " + context.processor;
  return context.is_virtual ? device + " (virtual time)" : device;
}

std::string chrome_json(const history &what) { return writer(what).write(); }

}  // namespace sg::trace
