// SPDX-License-Identifier: Apache-2.0
// Failures of the simulated device: a status with a text, returned by the functions of the table.
#pragma once

#include <streamgemm/backend.h>

#include <cstdarg>
#include <cstdio>
#include <exception>

namespace sg::sim {

// Stores its text in a fixed buffer, so that reporting a failed allocation allocates nothing.
class failure : public std::exception {
 public:
  __attribute__((format(printf, 3, 4))) failure(sg_status status, const char *format, ...) noexcept : status_(status) {
    va_list args;
    va_start(args, format);
    std::vsnprintf(text_, sizeof text_, format, args);
    va_end(args);
  }

  sg_status status() const noexcept { return status_; }
  const char *what() const noexcept override { return text_; }

 private:
  sg_status status_;
  char text_[SG_BACKEND_MESSAGE_SIZE];
};

}  // namespace sg::sim
