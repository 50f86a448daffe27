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

bool logs_fallbacks() noexcept {
  const sg_backend_host *const host = core.load(std::memory_order_acquire);
  return host != nullptr && host->log_enabled(SG_BACKEND_LOG_INFO, SG_BACKEND_LOG_FALLBACK) != 0;
}

void log_fallback(const char *format, ...) noexcept {
  if (!logs_fallbacks()) return;
  char text[SG_BACKEND_MESSAGE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  core.load(std::memory_order_acquire)->log(SG_BACKEND_LOG_INFO, SG_BACKEND_LOG_FALLBACK, text);
}

}  // namespace sg::cuda
