// SPDX-License-Identifier: Apache-2.0
// Failures inside the library: a status with a message, thrown as sg::error and turned into a status at the ABI.
#pragma once

#include <cxxabi.h>
#include <streamgemm/status.h>

#include <exception>
#include <string>

namespace sg {

const char *name_of(sg_status status) noexcept;  // "SG_STATUS_OK"

// Carries its text in a fixed buffer, so that reporting "out of memory" needs no memory.
class error : public std::exception {
 public:
  error(sg_status status, const char *format, ...) noexcept __attribute__((format(printf, 3, 4)));

  sg_status status() const noexcept { return status_; }
  const char *what() const noexcept override { return text_; }

 private:
  sg_status status_;
  char text_[1024];
};

// Sets the calling thread's message for sg_last_error_message.
void set_last_error(const char *text) noexcept;
const char *last_error() noexcept;

// Copies with truncation; always terminates. size > 0.
void copy_text(char *out, std::size_t size, const char *text) noexcept;

// The status of the exception being handled; sets the calling thread's message. Call inside catch (...).
sg_status status_of_current_exception() noexcept;

// Runs `body`, which returns nothing, and maps its exceptions to a status. Nothing but the end of the thread leaves it.
template <class Body>
sg_status guarded(Body &&body) {
  try {
    body();
    return SG_STATUS_OK;
  }
#ifdef __GLIBCXX__
  catch (const abi::__forced_unwind &) {  // the thread ends, in a function of the application's
    throw;
  }
#endif
  catch (...) {
    return status_of_current_exception();
  }
}

}  // namespace sg
