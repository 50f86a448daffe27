// SPDX-License-Identifier: Apache-2.0
// The log requested by SG_LOG or sg_log_set (docs/logging.md): one line for each message, on standard error or to a
// callback. A message neither locks nor allocates, so it works on any thread, during a fork, and while the process
// exits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sg {

enum class log_level : std::uint8_t { error, warn, info, debug };
enum class log_area : std::uint8_t { plan, plugin, memory, fallback, job };

constexpr std::uint32_t log_bit(log_level level, log_area area) noexcept {
  return 1u << (static_cast<unsigned>(level) * 5 + static_cast<unsigned>(area));
}

// Enabled messages, a bit for each level and area; all bits are set until the variable has been read.
constexpr std::uint32_t log_unread = ~0u;
extern std::atomic<std::uint32_t> g_log_enabled;
bool log_reads_variable(log_level level, log_area area) noexcept;  // once; the result of logs()

// Whether such messages are enabled: one relaxed load and a branch if not. Call it before computing the arguments of a
// message.
inline bool logs(log_level level, log_area area) noexcept {
  const std::uint32_t enabled = g_log_enabled.load(std::memory_order_relaxed);
  if ((enabled & log_bit(level, area)) == 0) [[likely]]
    return false;
  return enabled != log_unread || log_reads_variable(level, area);
}

// A function of the application that receives messages.
struct log_receiver {
  void (*relay)(const log_receiver &to, log_level level, const char *area, const char *text) = nullptr;  // calls it
  void (*callback)() = nullptr;  // as the relay knows it
  void *user = nullptr;
};

// Enables the most important `levels` of all areas, and sends messages to the receiver; without a relay to standard
// error. Returns when no thread is in the former one; false: this thread is.
bool set_log(int levels, const log_receiver &to) noexcept;

// The process exits: functions of the application receive no more messages.
void end_log_callbacks() noexcept;

// Writes a message, enabled or not, if its receiver wants it. Longer ones are cut and end in "...".
void log_message(log_level level, log_area area, const char *format, ...) noexcept
    __attribute__((format(printf, 3, 4)));

// `text` with control characters, backslashes and invalid UTF-8 as \xNN, cut with "..." to fit. Returns the length.
// size >= 4.
std::size_t escape_for_log(char *out, std::size_t size, const char *text) noexcept;

// Parses a value of SG_LOG; false: malformed.
bool parse_log_variable(const char *value, std::uint32_t &enabled) noexcept;

}  // namespace sg
