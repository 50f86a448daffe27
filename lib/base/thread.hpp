// SPDX-License-Identifier: Apache-2.0
// A thread of the library: it blocks the application's signals, and its stack size is fixed, whatever the process's
// limit is.
#pragma once

#include <pthread.h>

#include <functional>
#include <utility>

namespace sg {

class thread {
 public:
  thread() = default;
  // `name`: at most 15 characters. Throws sg::error (out of memory) if no thread can be started.
  thread(const char *name, std::function<void()> body);
  thread(thread &&other) noexcept : handle_(other.handle_), joinable_(std::exchange(other.joinable_, false)) {}
  thread &operator=(thread &&other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(joinable_, other.joinable_);
    return *this;
  }
  ~thread() = default;  // joined or detached

  bool joinable() const noexcept { return joinable_; }
  void join() noexcept;
  void detach() noexcept;

 private:
  pthread_t handle_{};
  bool joinable_ = false;
};

}  // namespace sg
