// SPDX-License-Identifier: Apache-2.0
// What activities, bytes, times and the processor are called in the exports.
#include <cstdio>
#include <fstream>
#include <string>

#include "base/text.hpp"
#include "ops/operation.hpp"
#include "trace/history.hpp"

namespace sg::trace {

const char *name_of_operation(std::uint8_t operation) noexcept {
  return operation < operation_count ? operations()[operation]->name : "command";
}

std::string bytes_text(std::uint64_t bytes) {
  char text[32];
  if (bytes < 1000)
    std::snprintf(text, sizeof text, "%llu B", static_cast<unsigned long long>(bytes));
  else if (bytes < 1000000)
    std::snprintf(text, sizeof text, "%.1f KB", double(bytes) * 1e-3);
  else if (bytes < 1000000000)
    std::snprintf(text, sizeof text, "%.1f MB", double(bytes) * 1e-6);
  else
    std::snprintf(text, sizeof text, "%.2f GB", double(bytes) * 1e-9);
  return text;
}

std::string ns_text(std::int64_t ns) {
  char text[32];
  const double us = double(ns) * 1e-3;
  if (us < 1000)
    std::snprintf(text, sizeof text, "%.2f us", us);
  else if (us < 1e6)
    std::snprintf(text, sizeof text, "%.3f ms", us * 1e-3);
  else
    std::snprintf(text, sizeof text, "%.3f s", us * 1e-6);
  return text;
}

const std::string &processor_name() {
  static const std::string name = [] {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
      if (const std::size_t colon = line.find(": "); colon != line.npos && line.starts_with("model name"))
        return printable(line.substr(colon + 2), 200);
    return std::string();
  }();
  return name;
}

std::string traced_job::title() const {
  if (trace_id == 0) return label;
  return (label.empty() ? label : label + ", ") + "trace id " + std::to_string(trace_id);
}

std::string activity::name() const {
  switch (kind) {
    case event_kind::submission: return "submit";
    case event_kind::planning: return "plan";
    case event_kind::wait: return job != 0 ? "wait" : "synchronize";
    case event_kind::replan: return "plan for less memory";
    default: break;
  }
  std::string text = name_of_operation(operation);
  if (m != 0) {
    char shape[48];
    std::snprintf(shape, sizeof shape, " %ux%ux%u", m, n, k);
    text += shape;
    if (count > 1) text += " x " + std::to_string(count);
  } else if (bytes != 0) {
    text += " " + bytes_text(bytes);
  } else if (count > 1) {
    text += " x " + std::to_string(count);
  }
  return text;
}

}  // namespace sg::trace
