// SPDX-License-Identifier: Apache-2.0
// The core's log, for what the plugin does in another way than was asked for.
#pragma once

#include <streamgemm/backend.h>

namespace sg::cuda {

void use_log_of(const sg_backend_host *host) noexcept;  // lives as long as the process

// Whether log_fallback() writes; its arguments are worked out before the call.
bool logs_fallbacks() noexcept;
void log_fallback(const char *format, ...) noexcept __attribute__((format(printf, 1, 2)));

}  // namespace sg::cuda
