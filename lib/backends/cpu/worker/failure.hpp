// SPDX-License-Identifier: Apache-2.0
// The text of this thread's latest failure.
#pragma once

#include <streamgemm/backend.h>

#include <cstdarg>
#include <cstdio>

namespace sg::cpu {

inline char *failure_text() noexcept {
  thread_local char text[SG_BACKEND_MESSAGE_SIZE];
  return text;
}

__attribute__((format(printf, 2, 3))) inline sg_status fail(sg_status status, const char *format, ...) noexcept {
  va_list args;
  va_start(args, format);
  std::vsnprintf(failure_text(), SG_BACKEND_MESSAGE_SIZE, format, args);
  va_end(args);
  return status;
}

// For a failed GEMM; nullptr after SG_STATUS_OK.
inline const char *text_of(sg_status status) noexcept {
  switch (status) {
    case SG_STATUS_OK: return nullptr;
    case SG_STATUS_OUT_OF_MEMORY: return "no memory for the GEMM's packed panels or its generated code";
    case SG_STATUS_UNSUPPORTED: return "the cpu's libraries have no such GEMM";
    case SG_STATUS_SHUTDOWN: return "the process is exiting";
    case SG_STATUS_CANCELLED: return "stopped while it ran";
    default: return "the cpu's library failed";
  }
}

}  // namespace sg::cpu
