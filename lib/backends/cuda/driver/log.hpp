// SPDX-License-Identifier: Apache-2.0
// Writes to the core's log what the plugin loads, and when it uses a fallback.
#pragma once

#include <streamgemm/backend.h>

namespace sg::cuda {

void use_log_of(const sg_backend_host *host) noexcept;  // lives as long as the process

// Whether log_fallback() writes; test it before computing the arguments.
bool logs_fallbacks() noexcept;
void log_fallback(const char *format, ...) noexcept __attribute__((format(printf, 1, 2)));
void log_loading(const char *format, ...) noexcept __attribute__((format(printf, 1, 2)));

}  // namespace sg::cuda
