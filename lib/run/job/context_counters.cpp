// SPDX-License-Identifier: Apache-2.0
// OpenMetrics 1.0: https://prometheus.io/docs/specs/om/open_metrics_spec/
#include "run/job/context_counters.hpp"

#include <cstdio>

namespace sg {

namespace {

// A label's value: backslash, quote and line feed are escaped.
std::string escaped(const std::string &text) {
  std::string made;
  for (const char c : text) {
    if (c == '\\' || c == '"') made += '\\';
    if (c == '\n')
      made += "\\n";
    else
      made += c;
  }
  return made;
}

class exposition {
 public:
  explicit exposition(std::span<const context_counters> all) : all_(all) {}

  // One metric family. `list(counters, add)` calls add(labels, value) for each sample, and add(labels, value, device)
  // for one of a part of the context.
  template <class List>
  void family(const char *name, const char *type, const char *unit, const char *help, List &&list) {
    const std::string whole = std::string("streamgemm_") + name;
    text_ += "# TYPE " + whole + " " + type + "\n";
    if (*unit) text_ += "# UNIT " + whole + " " + unit + "\n";
    text_ += "# HELP " + whole + " " + help + "\n";
    const std::string sample = whole + (std::string(type) == "counter" ? "_total" : "");
    for (const context_counters &each : all_) {
      list(each, [&](const std::string &labels, double value, const std::string *device = nullptr) {
        char number[40];
        std::snprintf(number, sizeof number, "%.17g", value);
        text_ += sample + "{context=\"" + std::to_string(each.number) + "\",device=\"" +
                 escaped(device ? *device : each.device) + "\"";
        if (!labels.empty()) text_ += "," + labels;
        text_ += std::string("} ") + number + "\n";
      });
    }
  }

  std::string end() && { return std::move(text_) + "# EOF\n"; }

 private:
  std::span<const context_counters> all_;
  std::string text_;
};

constexpr const char *lane_names[counted_lanes] = {"copy_in", "copy_out", "compute"};
constexpr const char *priority_names[3] = {"low", "normal", "high"};

}  // namespace

std::string open_metrics_text(std::span<const context_counters> all) {
  exposition made(all);
  made.family("jobs_submitted", "counter", "", "Jobs that were submitted.",
              [](const context_counters &c, auto &&add) { add("", double(c.submitted)); });
  made.family("jobs_completed", "counter", "", "Jobs that have completed, by outcome.",
              [](const context_counters &c, auto &&add) {
                add("outcome=\"succeeded\"", double(c.succeeded));
                add("outcome=\"failed\"", double(c.failed));
                add("outcome=\"cancelled\"", double(c.cancelled));
              });
  made.family("jobs_in_flight", "gauge", "", "Jobs that were submitted and have not completed.",
              [](const context_counters &c, auto &&add) { add("", double(c.in_flight)); });
  made.family("jobs_queued", "gauge", "", "Jobs that are ready and wait for a lane, by priority.",
              [](const context_counters &c, auto &&add) {
                for (std::size_t i = 0; i < c.queued.size(); ++i)
                  add(std::string("priority=\"") + priority_names[i] + "\"", double(c.queued[i]));
              });
  // `list(lanes, bytes of device memory, add)` for each device.
  const auto by_device = [](auto &&list) {
    return [list](const context_counters &c, auto &&add) {
      if (c.parts.empty()) return list(c.lanes, c.device_bytes, add);
      for (const context_counters::part &each : c.parts)
        list(each.lanes, each.device_bytes,
             [&](const std::string &labels, double value) { add(labels, value, &each.device); });
    };
  };
  const auto by_lane = [&](auto &&value_of) {
    return by_device([value_of](const context_counters::lane_counters &lanes, std::uint64_t, auto &&add) {
      for (std::size_t i = 0; i < counted_lanes; ++i)
        add(std::string("lane=\"") + lane_names[i] + "\"", value_of(lanes[i]));
    });
  };
  made.family("commands", "counter", "", "Commands that the device has run, by kind of lane.",
              by_lane([](const context_counters::lane &l) { return double(l.commands); }));
  made.family("lane_busy_seconds", "counter", "seconds", "Time in which a lane of that kind worked.",
              by_lane([](const context_counters::lane &l) { return double(l.busy_ns) * 1e-9; }));
  made.family("elapsed_seconds", "counter", "seconds", "Time since the context was created, on the device's clock.",
              [](const context_counters &c, auto &&add) { add("", double(c.elapsed_ns) * 1e-9); });
  made.family("transferred_bytes", "counter", "bytes", "Bytes copied to and from the device.",
              by_device([](const context_counters::lane_counters &lanes, std::uint64_t, auto &&add) {
                add("direction=\"in\"", double(lanes[0].bytes));
                add("direction=\"out\"", double(lanes[1].bytes));
              }));
  made.family("memory_bytes", "gauge", "bytes", "Memory that the context holds.",
              [](const context_counters &c, auto &&add) {
                add("kind=\"device\"", double(c.device_bytes));
                add("kind=\"pinned\"", double(c.pinned_bytes));
              });
  return std::move(made).end();
}

}  // namespace sg
