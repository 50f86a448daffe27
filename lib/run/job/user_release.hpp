// SPDX-License-Identifier: Apache-2.0
// The application's function that releases its `user` once the library will not use that again.
#pragma once

#include <memory>

#include "base/object.hpp"
#include "run/job/job.hpp"

namespace sg {

class job_home;

// Shared by all that may still use `user`: jobs, submissions of graphs, pipelines. When the last of them has gone, the
// function is called once on the thread of the context that runs callbacks, unless the call that took `user` failed.
class user_release {
 public:
  // Empty without a function. Throws std::bad_alloc.
  static std::shared_ptr<user_release> make(job_home &home, void (*function)(void *user), void *user);
  ~user_release();
  user_release(const user_release &) = delete;
  user_release &operator=(const user_release &) = delete;

  // The call has succeeded: the function will be called.
  void accept() noexcept { accepted_ = true; }

 private:
  explicit user_release(std::unique_ptr<callback_request> request) noexcept : request_(std::move(request)) {}

  std::unique_ptr<callback_request> request_;
  std::atomic<bool> accepted_{false};
};

}  // namespace sg
