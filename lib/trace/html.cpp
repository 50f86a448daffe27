// SPDX-License-Identifier: Apache-2.0
// The page is page.html, with the history as JavaScript in two places of it.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ops/command.hpp"
#include "trace/exporters.hpp"
#include "trace/metrics.hpp"
#include "trace/summary.hpp"

namespace sg::trace {

namespace {

constexpr char page[] = {
#include "trace_page.inc"
};

void put(std::string &out, std::int64_t value) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// A JavaScript string. '<' is escaped too: no text ends the script.
void put(std::string &out, std::string_view value) {
  out += '"';
  for (const char each : value) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte < 0x20 || each == '"' || each == '\\' || each == '<') {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", byte);
      out += code;
    } else {
      out += each;
    }
  }
  out += '"';
}

// The index of a colour of the page.
int colour_of_activity(const history &what, const activity &a) noexcept {
  switch (a.kind) {
    case event_kind::staging: return 3;
    case event_kind::submission: return 4;
    case event_kind::wait: return 5;
    case event_kind::planning:
    case event_kind::replan: return 6;
    default: break;
  }
  const track &where = what.tracks[a.track];
  if (where.kind != track_kind::device_lane) return 0;
  switch (where.lane) {
    case lane_kind::copy_in:
    case lane_kind::copy_peer: return 1;
    case lane_kind::copy_out: return 2;
    case lane_kind::staging: return 3;
    default: return 0;
  }
}

class script {
 public:
  // `predicted`: nullptr, or the prediction that it is shown with.
  explicit script(const history &what, const history *predicted = nullptr)
      : what_(what), predicted_(predicted), metrics_(metrics_of(what)) {}

  std::string write() {
    out_ = "{\"span\":";
    put(out_, what_.span_ns);
    out_ += ",\"dropped\":";
    put(out_, static_cast<std::int64_t>(what_.dropped));
    out_ += ",\"contexts\":[";
    for (std::size_t i = 0; i < what_.contexts.size(); ++i) add_context(i);
    out_ += "],\"summary\":[";
    const summary said = summary_of(what_, metrics_);
    for (const std::string &each : {said.time, said.limit, said.change}) {
      separate();
      put(out_, each);
    }
    out_ += "],\"prediction\":[";
    for (const auto &[name, value] : what_.prediction) {
      separate();
      out_ += '[';
      put(out_, name);
      separate();
      put(out_, value);
      out_ += ']';
    }
    out_ += "],\"tracks\":[";
    for (std::size_t i = 0; i < what_.tracks.size(); ++i) add_track(i);
    out_ += "],\"jobs\":[";
    for (const traced_job &each : what_.jobs) {
      separate();
      out_ += '[';
      put(out_, each.title());
      out_ += ']';
    }
    out_ += "],\"advice\":[";
    for (const advice &each : what_.advices) {
      separate();
      out_ += '[';
      put(out_, each.title);
      separate();
      put(out_, ns_text(static_cast<std::int64_t>(each.gain_seconds * 1e9)));
      separate();
      put(out_, each.evidence);
      out_ += ']';
    }
    out_ += "],\"names\":[";
    for (const std::string &each : names_) {
      separate();
      put(out_, each);
    }
    return std::move(out_ += "]}");
  }

 private:
  void separate() {
    if (out_.back() != '[' && out_.back() != '{') out_ += ',';
  }
  void figure(const char *name, const std::string &value) {
    separate();
    put(out_, name);
    out_ += ':';
    put(out_, value);
  }
  static std::string share(std::int64_t part_ns, std::int64_t of_ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f%%", of_ns > 0 ? 100 * double(part_ns) / double(of_ns) : 0);
    return text;
  }

  void add_context(std::size_t index) {
    const context_metrics &m = metrics_[index];
    separate();
    out_ += "{\"title\":";
    put(out_, title_of(what_.contexts[index]));
    out_ += ",\"virtual\":";
    out_ += what_.contexts[index].is_virtual ? "true" : "false";
    out_ += ",\"span\":";
    put(out_, m.span_ns);
    out_ += ",\"figures\":{";
    figure("span", ns_text(m.span_ns));
    figure("jobs", std::to_string(m.jobs));
    figure("failed jobs", std::to_string(m.failed_jobs));
    figure("commands", std::to_string(m.commands));
    figure("compute busy", share(m.compute_ns, m.span_ns));
    figure("copies in busy", share(m.copy_in_ns, m.span_ns));
    figure("copies out busy", share(m.copy_out_ns, m.span_ns));
    figure("staging busy", share(m.staging_ns, m.span_ns));
    figure("bytes in", bytes_text(m.bytes_in));
    figure("bytes out", bytes_text(m.bytes_out));
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", m.overlap_efficiency());
    figure("overlap efficiency", text);
    std::snprintf(text, sizeof text, "%.2f", m.parallelism());
    figure("parallelism", text);
    for (std::size_t cause = 0; cause < idle_causes; ++cause)
      figure((std::string("idle: ") + name_of(static_cast<idle_cause>(cause))).c_str(),
             share(m.idle_ns[cause], m.span_ns));
    figure("job latency, median", ns_text(m.of_jobs.p50_ns));
    figure("job latency, 99%", ns_text(m.of_jobs.p99_ns));
    out_ += "},\"gaps\":[";
    for (const idle_gap &each : m.gaps) {
      separate();
      out_ += '[';
      put(out_, each.start_ns);
      out_ += ',';
      put(out_, each.end_ns - each.start_ns);
      out_ += ',';
      put(out_, name_of(each.cause));
      out_ += ']';
    }
    out_ += "]}";
  }

  void add_track(std::size_t index) {
    const track &of = what_.tracks[index];
    const auto all = what_.of_track(index);
    separate();
    out_ += "{\"name\":";
    put(out_, of.name);
    out_ += ",\"context\":";
    put(out_, of.context == no_context ? -1 : static_cast<std::int64_t>(of.context));
    out_ += ",\"lane\":";
    put(out_, of.kind == track_kind::device_lane ? static_cast<std::int64_t>(of.lane) : -1);
    std::int64_t compared_ns = 0;
    for (const activity &each : all)
      if (predicted_ && predicted_->job(each.job)) compared_ns += each.end_ns - each.start_ns;
    out_ += ",\"compared\":";
    put(out_, compared_ns);
    std::int64_t latest = 0;
    list(all, "s", [&](const activity &a) { return a.start_ns - std::exchange(latest, a.start_ns); });
    list(all, "d", [](const activity &a) { return a.end_ns - a.start_ns; });
    list(all, "m", [&](const activity &a) { return number_of(a.name()); });
    list(all, "j", [&](const activity &a) { return static_cast<std::int64_t>(shown_number(what_, a.job)); });
    list(all, "c", [&](const activity &a) { return std::int64_t{colour_of_activity(what_, a)}; });
    out_ += '}';
  }

  template <class Value>
  void list(std::span<const activity> all, const char *key, Value &&value) {
    out_ += ",\"";
    out_ += key;
    out_ += "\":[";
    for (const activity &each : all) {
      separate();
      put(out_, value(each));
    }
    out_ += ']';
  }

  std::int64_t number_of(std::string name) {
    const auto [at, is_new] = name_index_.emplace(std::move(name), names_.size());
    if (is_new) names_.push_back(at->first);
    return static_cast<std::int64_t>(at->second);
  }

  const history &what_;
  const history *const predicted_;
  const std::vector<context_metrics> metrics_;
  std::string out_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> name_index_;
};

}  // namespace

std::string html(const history &what, const history *predicted) {
  constexpr std::string_view whole(page), trace_place = "/*TRACE*/null", predicted_place = "/*PREDICTED*/null";
  const std::size_t first = whole.find(trace_place), second = whole.find(predicted_place);
  std::string out(whole.substr(0, first));
  out += script(what, predicted).write();
  out += whole.substr(first + trace_place.size(), second - first - trace_place.size());
  out += predicted ? script(*predicted).write() : "null";
  out += whole.substr(second + predicted_place.size());
  return out;
}

}  // namespace sg::trace
