// SPDX-License-Identifier: Apache-2.0
// The text of a failure, of any length.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <memory>
#include <new>

namespace sg {

class failure_text {
 public:
  const char *c_str() const noexcept { return whole_ ? whole_.get() : short_; }
  // Replaces the text. Out of memory: the text is cut.
  void set(const char *format, ...) noexcept __attribute__((format(printf, 2, 3))) {
    std::va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    whole_.reset();
    const int length = std::vsnprintf(short_, sizeof short_, format, values);
    if (const auto size = static_cast<std::size_t>(length) + 1; length > 0 && size > sizeof short_) {
      whole_.reset(new (std::nothrow) char[size]);
      if (whole_) std::vsnprintf(whole_.get(), size, format, again);
    }
    va_end(again);
    va_end(values);
  }
  void clear() noexcept {
    whole_.reset();
    short_[0] = '\0';
  }

 private:
  std::unique_ptr<char[]> whole_;  // if it does not fit
  char short_[160] = "";
};

}  // namespace sg
