// SPDX-License-Identifier: Apache-2.0
#include "trace/trace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
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
  try {
    std::fprintf(stderr, "streamgemm: trace: SG_TRACE is \"%s\": %s\n", printable(value, 200).c_str(),
                 printable(what, 300).c_str());
  } catch (const std::bad_alloc &) {
  }
}

// Whether others can put links into the folder of the file, as into /tmp.
bool is_in_sticky_folder(const std::string &path) {
  const std::size_t end = path.rfind('/');
  const std::string folder = end == path.npos ? "." : path.substr(0, end + 1);
  struct stat facts;
  return stat(folder.c_str(), &facts) == 0 && (facts.st_mode & S_ISVTX) != 0;
}

// A regular file for writing; -1 with a reason. A pipe without a reader does not block.
int open_file(const std::string &path, const char *&reason) {
  const bool sticky = is_in_sticky_folder(path);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | (sticky ? O_NOFOLLOW : 0), 0666);
  struct stat facts;
  if (file < 0) {
    reason = sticky && errno == ELOOP ? "it is a link in a folder that others can write to" : std::strerror(errno);
  } else if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    reason = "it is not a regular file";
  } else {
    return file;
  }
  if (file >= 0) close(file);
  return -1;
}

[[noreturn]] void refuse(const std::string &path, const char *reason) {
  throw error(SG_STATUS_INVALID_ARGUMENT, "@path is \"%s\", which cannot be written: %s", path.c_str(), reason);
}

int opened(const std::string &path) {
  const char *reason = nullptr;
  const int file = open_file(path, reason);
  if (file < 0) refuse(path, reason);
  return file;
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
              "@path is \"%s\", whose format is unknown: .json, .pftrace, .perfetto-trace, .html, .svg or .txt",
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

void check_file(const std::string &path) {
  struct stat facts;
  const bool is_new = stat(path.c_str(), &facts) != 0 && errno == ENOENT;
  close(opened(path));
  if (is_new) unlink(path.c_str());
}

void write_file(const std::string &path, const std::string &content) {
  const int number = opened(path);
  const auto fail = [&] {
    throw error(SG_STATUS_IO_FAILURE, "@path is \"%s\", which could not be written: %s", path.c_str(),
                std::strerror(errno));
  };
  std::FILE *const file = ftruncate(number, 0) == 0 ? fdopen(number, "wb") : nullptr;
  if (!file) {
    const int reason = errno;
    close(number);
    errno = reason;
    fail();
  }
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
    check_file(path_of(value));
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
