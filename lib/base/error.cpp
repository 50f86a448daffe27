// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

namespace sg {

const char *name_of(sg_status status) noexcept {
  switch (status) {
    case SG_STATUS_OK: return "SG_STATUS_OK";
    case SG_STATUS_NOT_READY: return "SG_STATUS_NOT_READY";
    case SG_STATUS_TIMEOUT: return "SG_STATUS_TIMEOUT";
    case SG_STATUS_INVALID_ARGUMENT: return "SG_STATUS_INVALID_ARGUMENT";
    case SG_STATUS_INVALID_HANDLE: return "SG_STATUS_INVALID_HANDLE";
    case SG_STATUS_OUT_OF_MEMORY: return "SG_STATUS_OUT_OF_MEMORY";
    case SG_STATUS_NO_DEVICE: return "SG_STATUS_NO_DEVICE";
    case SG_STATUS_UNSUPPORTED: return "SG_STATUS_UNSUPPORTED";
    case SG_STATUS_BUSY: return "SG_STATUS_BUSY";
    case SG_STATUS_CANCELLED: return "SG_STATUS_CANCELLED";
    case SG_STATUS_DEADLOCK: return "SG_STATUS_DEADLOCK";
    case SG_STATUS_BACKEND_FAILURE: return "SG_STATUS_BACKEND_FAILURE";
    case SG_STATUS_DEPENDENCY_FAILED: return "SG_STATUS_DEPENDENCY_FAILED";
    case SG_STATUS_SHUTDOWN: return "SG_STATUS_SHUTDOWN";
    case SG_STATUS_INTERNAL: return "SG_STATUS_INTERNAL";
    case SG_STATUS_DEADLINE_EXCEEDED: return "SG_STATUS_DEADLINE_EXCEEDED";
    case SG_STATUS_IO_FAILURE: return "SG_STATUS_IO_FAILURE";
  }
  return "SG_STATUS_UNKNOWN";
}

namespace {
thread_local char t_last_error[2048];  // a job's message with those of the functions that it names
thread_local name_positions t_last_names;
thread_local sg_status t_last_status = SG_STATUS_OK;

constexpr char name_mark = '\1';
}  // namespace

// The text before a name is the format before its '@', with the same values: its length is the name's position,
// whatever the values contain.
error::error(sg_status status, const char *format, ...) noexcept : status_(status) {
  char unmarked[512];
  std::size_t length = 0;
  va_list args;
  va_start(args, format);
  for (const char *c = format; *c != '\0' && length + 1 < sizeof unmarked; ++c) {
    if (*c != '@') {
      unmarked[length++] = *c;
    } else if (names_.count < 6) {
      va_list before;
      va_copy(before, args);
      unmarked[length] = '\0';
      const int position = std::vsnprintf(text_, sizeof text_, unmarked, before);
      va_end(before);
      if (position >= 0 && position < static_cast<int>(sizeof text_))
        names_.at[names_.count++] = static_cast<std::uint16_t>(position);
    }
  }
  unmarked[length] = '\0';
  std::vsnprintf(text_, sizeof text_, unmarked, args);
  va_end(args);
}

void copy_text(char *out, std::size_t size, const char *text) noexcept { std::snprintf(out, size, "%s", text); }

void set_last_error(sg_status status, const char *text) noexcept {
  t_last_status = status;
  copy_text(t_last_error, sizeof t_last_error, text);
  t_last_names.count = 0;
}

void set_last_error(const error &failure) noexcept {
  set_last_error(failure.status(), failure.what());
  t_last_names = failure.names();
}

const char *last_error() noexcept { return t_last_error; }
sg_status last_error_status() noexcept { return t_last_status; }

const char *last_error_marked() noexcept {
  thread_local char marked[sizeof t_last_error + sizeof t_last_names.at];
  std::size_t used = 0;
  int next = 0;
  for (std::size_t i = 0; t_last_error[i] != '\0'; ++i) {
    if (next < t_last_names.count && t_last_names.at[next] == i) {
      marked[used++] = name_mark;
      ++next;
    }
    marked[used++] = t_last_error[i] == name_mark ? '?' : t_last_error[i];
  }
  marked[used] = '\0';
  return marked;
}

sg_status status_of_current_exception() noexcept {
  try {
    throw;
  } catch (const error &e) {
    set_last_error(e);
    return e.status();
  } catch (const std::bad_alloc &) {
    set_last_error(SG_STATUS_OUT_OF_MEMORY, "out of host memory");
    return SG_STATUS_OUT_OF_MEMORY;
  } catch (const std::exception &e) {
    set_last_error(SG_STATUS_INTERNAL, e.what());
    return SG_STATUS_INTERNAL;
  } catch (...) {
    set_last_error(SG_STATUS_INTERNAL, "an exception of an unknown type");
    return SG_STATUS_INTERNAL;
  }
}

}  // namespace sg
