// SPDX-License-Identifier: Apache-2.0
// An event: a position in the stream that it was last recorded in.
#pragma once

#include <cstdint>
#include <mutex>

#include "progress.hpp"

namespace sg::cpu {

// A number of commands of one stream; waiting for it waits until they have completed. `of` NULL: already reached.
struct stream_position {
  progress *of = nullptr;
  std::uint64_t count = 0;
};

class event {
 public:
  event() = default;
  event(const event &) = delete;
  event &operator=(const event &) = delete;
  ~event() {
    if (recorded_.of != nullptr) recorded_.of->release();
  }

  void record(progress &of, std::uint64_t count) noexcept {
    const stream_position now{of.retain(), count};
    progress *before;
    {
      const std::lock_guard lock(mutex_);
      before = recorded_.of;
      recorded_ = now;
    }
    if (before != nullptr) before->release();
  }

  // The recorded position, with a reference for the caller; empty if never recorded.
  stream_position recorded() noexcept {
    const std::lock_guard lock(mutex_);
    if (recorded_.of != nullptr) recorded_.of->retain();
    return recorded_;
  }

 private:
  std::mutex mutex_;  // streams of several threads may wait for one event
  stream_position recorded_;
};

}  // namespace sg::cpu
