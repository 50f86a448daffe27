// SPDX-License-Identifier: Apache-2.0
// The log that the variable SG_LOG asks for (docs/logging.md): one line for each message, on standard error. No lock
// and no memory of its own, so it works on any thread, beside a fork, and while the process exits.
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

// What is logged, a bit for each level and area; all bits are set until the variable has been read.
constexpr std::uint32_t log_unread = ~0u;
extern std::atomic<std::uint32_t> g_log_enabled;
bool log_reads_variable(log_level level, log_area area) noexcept;  // once; the answer of logs()

// Whether such messages are logged: one relaxed load and a branch where they are not. Call it before the arguments of a
// message are worked out.
inline bool logs(log_level level, log_area area) noexcept {
  const std::uint32_t enabled = g_log_enabled.load(std::memory_order_relaxed);
  if ((enabled & log_bit(level, area)) == 0) [[likely]]
    return false;
  return enabled != log_unread || log_reads_variable(level, area);
}

// Writes a message, whether it is enabled or not. Longer ones end in "...".
void log_message(log_level level, log_area area, const char *format, ...) noexcept
    __attribute__((format(printf, 3, 4)));

// `text` as the log shows it: control characters, backslashes and what is not UTF-8 as \xNN; "..." in place of what
// does not fit. Returns the length. size >= 4.
std::size_t escape_for_log(char *out, std::size_t size, const char *text) noexcept;

// The bits that a value of SG_LOG asks for; false: it is malformed.
bool parse_log_variable(const char *value, std::uint32_t &enabled) noexcept;

}  // namespace sg
