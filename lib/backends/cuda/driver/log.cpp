// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/log.hpp"

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace sg::cuda {

namespace {
std::atomic<const sg_backend_host *> core{nullptr};
}  // namespace

void use_log_of(const sg_backend_host *host) noexcept {
  if (host != nullptr && host->struct_size >= offsetof(sg_backend_host, log) + sizeof host->log)
    core.store(host, std::memory_order_release);
}

namespace {

bool logs(sg_backend_log_area area) noexcept {
  const sg_backend_host *const host = core.load(std::memory_order_acquire);
  return host != nullptr && host->log_enabled(SG_BACKEND_LOG_INFO, area) != 0;
}

void log(sg_backend_log_area area, const char *format, std::va_list arguments) noexcept {
  if (!logs(area)) return;
  char text[SG_BACKEND_MESSAGE_SIZE];
  std::vsnprintf(text, sizeof text, format, arguments);
  core.load(std::memory_order_acquire)->log(SG_BACKEND_LOG_INFO, area, text);
}

}  // namespace

bool logs_fallbacks() noexcept { return logs(SG_BACKEND_LOG_FALLBACK); }

void log_fallback(const char *format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  log(SG_BACKEND_LOG_FALLBACK, format, arguments);
  va_end(arguments);
}

void log_loading(const char *format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  log(SG_BACKEND_LOG_PLUGIN, format, arguments);
  va_end(arguments);
}

}  // namespace sg::cuda
