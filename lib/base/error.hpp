// SPDX-License-Identifier: Apache-2.0
// Failures inside the library: a status with a message, thrown as sg::error and turned into a status at the ABI.
#pragma once

#include <cxxabi.h>
#include <streamgemm/status.h>

#include <cstdint>
#include <exception>
#include <string>

namespace sg {

const char *name_of(sg_status status) noexcept;  // "SG_STATUS_OK"

// Where the names of arguments begin in a message, for languages that call arguments by other names.
struct name_positions {
  std::uint16_t at[6];
  int count = 0;
};

// Carries its text in a fixed buffer, so that reporting "out of memory" needs no memory. '@' in the format precedes the
// name of an argument, as in "@%s->batch is %lld"; it is not part of the text.
class error : public std::exception {
 public:
  error(sg_status status, const char *format, ...) noexcept __attribute__((format(printf, 3, 4)));

  sg_status status() const noexcept { return status_; }
  const char *what() const noexcept override { return text_; }
  const name_positions &names() const noexcept { return names_; }

 private:
  sg_status status_;
  name_positions names_;
  char text_[1024];
};

// Sets the calling thread's status and message for sg_last_error.
void set_last_error(sg_status status, const char *text) noexcept;
void set_last_error(const error &failure) noexcept;
const char *last_error() noexcept;
sg_status last_error_status() noexcept;
// The message with the byte 1 before each name of an argument, and nowhere else.
const char *last_error_marked() noexcept;

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
