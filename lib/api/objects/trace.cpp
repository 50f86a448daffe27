// SPDX-License-Identifier: Apache-2.0
#include <streamgemm/trace.h>

#include <algorithm>
#include <cstring>

#include "api/context_of.hpp"
#include "api/entry.hpp"
#include "run/job/job.hpp"
#include "run/objects/stream.hpp"
#include "run/objects/trace_session.hpp"
#include "trace/metrics.hpp"
#include "trace/trace_file.hpp"

namespace sg {
namespace {

ref<trace_session> session_of(const sg_trace *handle) {
  return object_of<trace_session>(handle, object_type::trace, "trace");
}

double seconds_of(std::int64_t ns) noexcept { return double(ns) * 1e-9; }

void fill(sg_trace_metrics &out, const trace::context_metrics &m) noexcept {
  out.jobs = m.jobs;
  out.failed_jobs = m.failed_jobs;
  out.commands = m.commands;
  out.bytes_in = m.bytes_in;
  out.bytes_out = m.bytes_out;
  out.span_seconds = seconds_of(m.span_ns);
  out.busy_seconds = seconds_of(m.busy_ns);
  out.compute_seconds = seconds_of(m.compute_ns);
  out.copy_in_seconds = seconds_of(m.copy_in_ns);
  out.copy_out_seconds = seconds_of(m.copy_out_ns);
  out.staging_seconds = seconds_of(m.staging_ns);
  out.command_seconds = seconds_of(m.command_ns);
  out.exposed_seconds = seconds_of(m.exposed_ns);
  out.overlap_efficiency = m.overlap_efficiency();
  const auto idle = [&](trace::idle_cause cause) { return seconds_of(m.idle_ns[static_cast<std::size_t>(cause)]); };
  out.idle_link_seconds = idle(trace::idle_cause::link);
  out.idle_staging_seconds = idle(trace::idle_cause::staging);
  out.idle_submission_seconds = idle(trace::idle_cause::submission);
  out.idle_dispatch_seconds = idle(trace::idle_cause::dispatch);
  out.idle_no_work_seconds = idle(trace::idle_cause::no_work);
  out.latency_p50_seconds = seconds_of(m.of_jobs.p50_ns);
  out.latency_p90_seconds = seconds_of(m.of_jobs.p90_ns);
  out.latency_p99_seconds = seconds_of(m.of_jobs.p99_ns);
  out.latency_max_seconds = seconds_of(m.of_jobs.max_ns);
}

// Of a context, by its number; of one stream, or of all: -1.
sg_trace_metrics metrics_in(trace_session &session, std::uint64_t context, std::int64_t stream) {
  const trace::history &seen = session.seen();
  sg_trace_metrics m = SG_TRACE_METRICS_INIT;
  m.overlap_efficiency = 1;
  m.events = session.recorded().events.size();
  m.dropped_events = seen.dropped;
  for (std::size_t i = 0; i < seen.contexts.size(); ++i)
    if (seen.contexts[i].number == static_cast<std::uint32_t>(context))
      fill(m, trace::metrics_of_context(seen, i, stream));
  return m;
}

static_assert(static_cast<int>(trace::file_format::by_name) == SG_TRACE_FORMAT_AUTO &&
              static_cast<int>(trace::file_format::chrome_json) == SG_TRACE_FORMAT_JSON &&
              static_cast<int>(trace::file_format::perfetto) == SG_TRACE_FORMAT_PERFETTO &&
              static_cast<int>(trace::file_format::html) == SG_TRACE_FORMAT_HTML &&
              static_cast<int>(trace::file_format::svg) == SG_TRACE_FORMAT_SVG &&
              static_cast<int>(trace::file_format::text) == SG_TRACE_FORMAT_TEXT);

trace::file_format format_of(sg_trace_format format, sg_trace_format lowest) {
  require_range(format, lowest, SG_TRACE_FORMAT_TEXT, "format");
  return static_cast<trace::file_format>(format);
}

trace::file_format format_of_file(const char *path, sg_trace_format format) {
  require(path, "path");
  const trace::file_format wanted = format_of(format, SG_TRACE_FORMAT_AUTO);
  return wanted == trace::file_format::by_name ? trace::format_of_name(path) : wanted;
}

}  // namespace
}  // namespace sg

using sg::guarded;
using sg::object_type;
using sg::ref;
using sg::session_of;

sg_status sg_trace_start(const sg_trace_options *options, sg_trace **out_trace) {
  if (out_trace) *out_trace = nullptr;
  return guarded([&] {
    sg::require(out_trace, "out_trace");
    const sg_trace_options given = sg::options_of(options, "options");
    constexpr std::uint64_t most = std::uint64_t{1} << 32;
    if (given.max_events > most)
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@options->max_events is %llu; it must be at most %llu",
                      static_cast<unsigned long long>(given.max_events), static_cast<unsigned long long>(most));
    if (given.flags & ~static_cast<std::uint32_t>(SG_TRACE_DEVICE_TIMES))
      throw sg::error(SG_STATUS_INVALID_ARGUMENT, "@options->flags is 0x%x, which has unknown bits", given.flags);
    const bool device_times = (given.flags & SG_TRACE_DEVICE_TIMES) != 0;
    const std::uint64_t max_events = given.max_events != 0 ? given.max_events : sg::trace::default_events;
    *out_trace = sg::handle_of<sg_trace>(
        sg::make_handle(ref<sg::object>::adopt(new sg::trace_session(max_events, device_times))));
  });
}

sg_status sg_trace_stop(sg_trace *trace) {
  return guarded([&] { session_of(trace)->stop(); });
}

sg_status sg_trace_retain(sg_trace *trace) { return sg::retain(trace, object_type::trace, "trace"); }

sg_status sg_trace_release(sg_trace *trace) { return sg::release(trace, object_type::trace, "trace"); }

sg_status sg_trace_write(sg_trace *trace, const char *path, sg_trace_format format) {
  return guarded([&] {
    const auto session = session_of(trace);
    const auto wanted = sg::format_of_file(path, format);
    sg::trace::write_file(path, sg::trace::in_format(session->recorded(), wanted));
  });
}

sg_status sg_trace_check_path(const char *path, sg_trace_format format) {
  return guarded([&] {
    sg::format_of_file(path, format);
    sg::trace::check_file(path);
  });
}

sg_status sg_trace_export(sg_trace *trace, sg_trace_format format, void *data, uint64_t size, uint64_t *out_size) {
  if (out_size) *out_size = 0;
  return guarded([&] {
    const auto session = session_of(trace);
    const auto wanted = sg::format_of(format, SG_TRACE_FORMAT_JSON);
    if (size > 0) sg::require(data, "data");
    const std::string whole = sg::trace::in_format(session->recorded(), wanted);
    if (out_size) *out_size = whole.size();
    if (size > 0) std::memcpy(data, whole.data(), std::min<std::size_t>(size, whole.size()));
  });
}

sg_status sg_trace_get_metrics(sg_trace *trace, sg_context *context, sg_trace_metrics *out_metrics) {
  return guarded([&] {
    const auto session = session_of(trace);
    const auto of = sg::context_of(context);
    sg::write_out(out_metrics, sg::metrics_in(*session, of->number(), -1), "out_metrics");
  });
}

sg_status sg_trace_get_stream_metrics(sg_trace *trace, sg_stream *stream, sg_trace_metrics *out_metrics) {
  return guarded([&] {
    const auto session = session_of(trace);
    const auto of = sg::object_of<sg::stream>(stream, object_type::stream, "stream");
    sg::write_out(out_metrics, sg::metrics_in(*session, of->owner().number(), of->number()), "out_metrics");
  });
}

sg_status sg_trace_overlap_jobs(sg_trace *trace, sg_job *first, sg_job *second, double *out_seconds) {
  if (out_seconds) *out_seconds = 0;
  return guarded([&] {
    const auto session = session_of(trace);
    const auto one = sg::object_of<sg::job>(first, object_type::job, "first");
    const auto other = sg::object_of<sg::job>(second, object_type::job, "second");
    sg::require(out_seconds, "out_seconds");
    if (one->trace_number == 0 || other->trace_number == 0) return;
    *out_seconds =
        sg::seconds_of(sg::trace::overlap_of_jobs_ns(session->seen(), one->trace_number, other->trace_number));
  });
}

sg_status sg_trace_overlap_streams(sg_trace *trace, sg_stream *first, sg_stream *second, double *out_seconds) {
  if (out_seconds) *out_seconds = 0;
  return guarded([&] {
    const auto session = session_of(trace);
    const auto one = sg::object_of<sg::stream>(first, object_type::stream, "first");
    const auto other = sg::object_of<sg::stream>(second, object_type::stream, "second");
    sg::require(out_seconds, "out_seconds");
    *out_seconds = sg::seconds_of(sg::trace::overlap_of_streams_ns(session->seen(), one->number(), other->number()));
  });
}
