// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>

namespace sg {

constinit std::atomic<std::uint32_t> g_log_enabled{log_unread};

namespace {

constexpr std::array<std::string_view, 4> levels{"error", "warn", "info", "debug"};
constexpr std::array<std::string_view, 5> areas{"plan", "plugin", "memory", "fallback", "job"};
constexpr std::size_t longest_value = 200;
constexpr std::size_t longest_text = 1600;

// Where messages go. Of two receivers one is current; the other one is set when no thread is in it.
struct receiver {
  log_receiver to;
  std::uint32_t enabled = log_unread;  // what it receives; at first all that SG_LOG enables
  std::atomic<int> threads{0};         // that are in it
};
constinit receiver g_receivers[2];
constinit std::atomic<unsigned> g_current{0};
constinit std::mutex g_setting;  // during a call of set_log, which may wait for a callback: a fork does not take it
constinit std::atomic<bool> g_callbacks_end{false};
thread_local receiver *t_within = nullptr;  // whose callback this thread runs

// Threads of the parent do not return in its child, nor does one that was setting the log.
void after_fork() noexcept {
  ::new (&g_setting) std::mutex;
  for (receiver &each : g_receivers) each.threads.store(&each == t_within ? 1 : 0);
}

class receiving {
 public:
  receiving() noexcept {
    for (;;) {
      const unsigned current = g_current.load();
      to_ = &g_receivers[current];
      to_->threads.fetch_add(1);
      if (g_current.load() == current) return;
      to_->threads.fetch_sub(1);
    }
  }
  ~receiving() { to_->threads.fetch_sub(1); }
  receiving(const receiving &) = delete;
  receiving &operator=(const receiving &) = delete;
  receiver &to() const noexcept { return *to_; }

 private:
  receiver *to_;
};

// The bytes of the printable UTF-8 character at `text`; 0: none.
std::size_t printable_character(const unsigned char *text) noexcept {
  const auto continues = [&](std::size_t at) { return (text[at] & 0xc0) == 0x80; };
  const unsigned char first = text[0];
  if (first < 0x80) return first >= 0x20 && first != 0x7f && first != '\\' ? 1 : 0;
  if (first < 0xc2 || first > 0xf4 || !continues(1)) return 0;
  if (first < 0xe0) return first == 0xc2 && text[1] < 0xa0 ? 0 : 2;  // U+0080 to U+009F are control characters
  if (!continues(2)) return 0;
  if (first < 0xf0) {
    const bool overlong = first == 0xe0 && text[1] < 0xa0, surrogate = first == 0xed && text[1] >= 0xa0;
    const bool line_end = first == 0xe2 && text[1] == 0x80 && (text[2] == 0xa8 || text[2] == 0xa9);
    return overlong || surrogate || line_end ? 0 : 3;
  }
  const bool overlong = first == 0xf0 && text[1] < 0x90, beyond = first == 0xf4 && text[1] >= 0x90;
  return overlong || beyond || !continues(3) ? 0 : 4;
}

// A closed pipe must not terminate the process: SIGPIPE is blocked, and consumed if raised.
class without_sigpipe {
 public:
  without_sigpipe() noexcept {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~without_sigpipe() {
    constexpr timespec at_once{0, 0};
    while (broken && !was_pending_ && sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  bool broken = false;

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

void write_line(std::string_view level, std::string_view area, const char *text) noexcept {
  char line[longest_text];
  const int start = std::snprintf(line, sizeof line, "streamgemm: %.*s: %.*s: ", static_cast<int>(level.size()),
                                  level.data(), static_cast<int>(area.size()), area.data());
  std::size_t length = static_cast<std::size_t>(start);
  length += escape_for_log(line + length, sizeof line - length - 1, text);
  line[length++] = '\n';
  const int saved = errno;
  {
    without_sigpipe held;
    for (std::size_t done = 0; done < length;) {
      const ssize_t n = write(STDERR_FILENO, line + done, length - done);
      if (n > 0)
        done += static_cast<std::size_t>(n);
      else if (n == 0 || errno != EINTR) {
        held.broken = n < 0 && errno == EPIPE;
        break;
      }
    }
  }
  errno = saved;
}

void call_back(receiver &to, log_level level, log_area area, const char *text) noexcept {
  char line[longest_text];
  escape_for_log(line, sizeof line, text);
  const int saved = errno;
  t_within = &to;
  to.to.relay(to.to, level, areas[static_cast<std::size_t>(area)].data(), line);
  t_within = nullptr;
  errno = saved;
}

}  // namespace

bool set_log(int levels_enabled, const log_receiver &to) noexcept {
  if (t_within) return false;
  std::uint32_t enabled = 0;
  for (int l = 0; l < levels_enabled; ++l)
    for (std::size_t a = 0; a < areas.size(); ++a)
      enabled |= log_bit(static_cast<log_level>(l), static_cast<log_area>(a));
  // If standard error is closed, the application may reuse its number for another file.
  if (!to.relay && fcntl(STDERR_FILENO, F_GETFD) < 0) enabled = 0;
  static const int fork_handler = pthread_atfork(nullptr, nullptr, after_fork);
  static_cast<void>(fork_handler);
  const std::lock_guard held(g_setting);
  const unsigned before = g_current.load();
  receiver &next = g_receivers[1 - before];
  next.to = to;
  next.enabled = enabled;
  g_current.store(1 - before);
  g_log_enabled.store(enabled, std::memory_order_relaxed);
  while (g_receivers[before].threads.load() > 0) std::this_thread::yield();
  return true;
}

void end_log_callbacks() noexcept { g_callbacks_end.store(true); }

std::size_t escape_for_log(char *out, std::size_t size, const char *text) noexcept {
  constexpr char digits[] = "0123456789abcdef";
  const auto *from = reinterpret_cast<const unsigned char *>(text);
  std::size_t length = 0;
  std::size_t fits = 0;  // length so far that leaves room for "..."
  while (*from) {
    const std::size_t plain = printable_character(from), needed = plain ? plain : 4;
    if (length + needed >= size) {
      std::memcpy(out + fits, "...", 4);
      return fits + 3;
    }
    if (plain) {
      std::memcpy(out + length, from, plain);
      from += plain;
    } else {
      const unsigned char byte = *from++;
      const char escaped[] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      std::memcpy(out + length, escaped, sizeof escaped);
    }
    length += needed;
    if (length + 4 <= size) fits = length;
  }
  out[length] = '\0';
  return length;
}

bool parse_log_variable(const char *value, std::uint32_t &enabled) noexcept {
  enabled = 0;
  std::string_view rest(value, strnlen(value, longest_value + 1));
  if (rest.size() > longest_value) return false;
  const auto next = [&] {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
    return word;
  };
  const bool has_areas = rest.find(',') != rest.npos;
  const std::string_view level = next();
  std::size_t most = 0;
  while (most < levels.size() && levels[most] != level) ++most;
  if (most == levels.size() && level != "off") return false;
  std::uint32_t wanted = 0;  // a bit for each area
  for (bool more = has_areas; more;) {
    more = rest.find(',') != rest.npos;
    const std::string_view word = next();
    std::size_t area = 0;
    while (area < areas.size() && areas[area] != word) ++area;
    if (area == areas.size()) return false;
    wanted |= 1u << area;
  }
  if (level == "off") return true;
  for (std::size_t l = 0; l <= most; ++l)
    for (std::size_t a = 0; a < areas.size(); ++a)
      if (!has_areas || (wanted & 1u << a)) enabled |= log_bit(static_cast<log_level>(l), static_cast<log_area>(a));
  return true;
}

bool log_reads_variable(log_level level, log_area area) noexcept {
  const char *value = secure_getenv("SG_LOG");
  // If standard error is closed, the application may reuse its number for another file.
  if (value && fcntl(STDERR_FILENO, F_GETFD) < 0) value = nullptr;
  std::uint32_t enabled = 0, unread = log_unread;
  const bool sound = !value || !*value || parse_log_variable(value, enabled);
  if (!sound) enabled = 0;
  // Only one thread reports it.
  if (g_log_enabled.compare_exchange_strong(unread, enabled, std::memory_order_relaxed) && !sound) {
    char text[400];
    std::snprintf(
        text, sizeof text,
        "SG_LOG is \"%.60s\", not LEVEL[,AREA...] with a level of error, warn, info, debug and areas of plan, plugin, "
        "memory, fallback, job; nothing is logged",
        value);
    write_line("warn", "log", text);
  }
  return (g_log_enabled.load(std::memory_order_relaxed) & log_bit(level, area)) != 0;
}

void log_message(log_level level, log_area area, const char *format, ...) noexcept {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length >= static_cast<int>(sizeof text)) std::memcpy(text + sizeof text - 4, "...", 4);
  if (length < 0 || t_within) return;
  const receiving here;
  if ((here.to().enabled & log_bit(level, area)) == 0) return;  // it was set meanwhile
  if (here.to().to.relay) {
    if (!g_callbacks_end.load()) call_back(here.to(), level, area, text);
    return;
  }
  write_line(levels[static_cast<std::size_t>(level)], areas[static_cast<std::size_t>(area)], text);
}

}  // namespace sg
