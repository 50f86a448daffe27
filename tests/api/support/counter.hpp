// SPDX-License-Identifier: Apache-2.0
// Counts calls on one thread while another waits for them; it may be destroyed as soon as the waiter has seen its
// count.
#pragma once

#include <condition_variable>
#include <mutex>

namespace sg_test {

class counter {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++value_;
    changed_.notify_all();
  }
  void wait_for(int value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return value_ >= value; });
  }
  int value() {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int value_ = 0;
};

}  // namespace sg_test
