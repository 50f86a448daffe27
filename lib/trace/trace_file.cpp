// SPDX-License-Identifier: Apache-2.0
#include "trace/trace_file.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/error.hpp"
#include "base/log.hpp"
#include "trace/advice.hpp"
#include "trace/exporters.hpp"
#include "trace/recorder.hpp"

namespace sg::trace {

namespace {

// Once in a process: 0 not read yet, 1 it asks for nothing or the trace is written, 2 it is recorded.
std::atomic<int> g_by_variable{0};

const char *variable() noexcept {
  const char *value = secure_getenv("SG_TRACE");
  return value && *value ? value : nullptr;
}

// Processes that have the variable in common write files of their own: %p is the number of the process.
std::string path_of(std::string value) {
  const std::size_t at = value.find("%p");
  return at == value.npos ? value : value.replace(at, 2, std::to_string(getpid()));
}

void report(const char *value, const char *what) noexcept {
  std::fprintf(stderr, "streamgemm: trace: SG_TRACE is \"%.200s\": %.300s\n", value, what);
}

}  // namespace

file_format format_of_name(const std::string &path) {
  const struct {
    std::string_view end;
    file_format format;
  } known[] = {{".json", file_format::chrome_json},
               {".pftrace", file_format::perfetto},
               {".perfetto-trace", file_format::perfetto},
               {".html", file_format::html},
               {".svg", file_format::svg},
               {".txt", file_format::text}};
  for (const auto &each : known)
    if (path.size() > each.end.size() && std::string_view(path).ends_with(each.end)) return each.format;
  throw error(SG_STATUS_INVALID_ARGUMENT,
              "path is \"%s\", whose format is unknown: .json, .pftrace, .perfetto-trace, .html, .svg or .txt",
              path.c_str());
}

std::string in_format(const recording &what, file_format format) {
  history measured = history_of(what);
  measured.advices = advice_of(what, measured);
  switch (format) {
    case file_format::chrome_json: return chrome_json(measured);
    case file_format::perfetto: return perfetto(measured);
    case file_format::svg: return svg(measured);
    case file_format::text: return text(measured);
    default: break;
  }
  if (what.schedules.empty()) return html(measured);
  const history predicted = predicted_history_of(what, measured);
  return html(measured, &predicted);
}

void write_file(const std::string &path, const std::string &content) {
  std::FILE *const file = std::fopen(path.c_str(), "wbe");
  const auto fail = [&] {
    throw error(SG_STATUS_INVALID_ARGUMENT, "path is \"%s\", which cannot be written: %s", path.c_str(),
                std::strerror(errno));
  };
  if (!file) fail();
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const int reason = errno;
  const bool closed = std::fclose(file) == 0;
  if (written && closed) return;
  if (!written) errno = reason;
  fail();
}

void start_by_variable() noexcept {
  int unread = 0;
  if (g_by_variable.load(std::memory_order_relaxed) != 0 || !g_by_variable.compare_exchange_strong(unread, 1)) return;
  const char *const value = variable();
  if (!value) return;
  try {
    format_of_name(value);
    const char *const times = secure_getenv("SG_TRACE_DEVICE_TIMES");
    start_recording(default_events, times && std::strcmp(times, "1") == 0);
    g_by_variable.store(2);
  } catch (const std::exception &why) {
    report(value, why.what());
  }
}

void write_by_variable() noexcept {
  int recorded = 2;
  if (!g_by_variable.compare_exchange_strong(recorded, 1)) return;
  const char *const value = variable();
  const auto found = stop_recording();
  if (!value || !found) return;
  try {
    write_file(path_of(value), in_format(*found, format_of_name(value)));
  } catch (const std::exception &why) {
    report(value, why.what());
  }
}

}  // namespace sg::trace
