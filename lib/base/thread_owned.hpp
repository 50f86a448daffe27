// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>

namespace sg {

// A T of each thread's own. Not a thread_local itself: that would come off every thread's stack, and be read after its
// end, because exit handlers and other libraries' ends of a thread run after its objects are gone. (One that a thread
// first asks for in such a place is never given back.)
template <class T>
class thread_owned {
 public:
  // The calling thread's, made when it first asks; nullptr when it has ended, or when there is no memory for it.
  static T *get() noexcept {
    if (own_ || has_ended_) return own_;
    thread_local const ender at_end;
    return own_ = new (std::nothrow) T;
  }

 private:
  struct ender {
    ender() noexcept {}
    ~ender() {
      delete own_;
      own_ = nullptr;
      has_ended_ = true;
    }
  };
  static inline thread_local constinit T *own_ = nullptr;
  static inline thread_local constinit bool has_ended_ = false;
};

}  // namespace sg
