// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <new>

namespace sg {

// A T of each thread's own. Not a thread_local itself: that would come off every thread's stack, and be read after its
// end, because exit handlers and other libraries' ends of a thread run after its objects are gone; and glibc ends the
// process where it has no memory to note a thread_local's destructor. (One that a thread first asks for in such a
// place, and the main thread's, are never given back.)
template <class T>
class thread_owned {
 public:
  // The calling thread's, made when it first asks; nullptr when it has ended, or when there is no memory for it.
  static T *get() noexcept {
    if (own_ || has_ended_ || !key_.made) return own_;
    T *const fresh = new (std::nothrow) T;
    if (fresh && pthread_setspecific(key_.name, fresh) != 0) {
      delete fresh;
      return nullptr;
    }
    return own_ = fresh;
  }

 private:
  struct key {  // for good: the library is never unloaded
    pthread_key_t name{};
    const bool made = pthread_key_create(&name, thread_ends) == 0;
  };
  static void thread_ends(void *own) noexcept {
    own_ = nullptr;
    has_ended_ = true;
    delete static_cast<T *>(own);
  }
  static inline const key key_;
  static inline thread_local constinit T *own_ = nullptr;
  static inline thread_local constinit bool has_ended_ = false;
};

}  // namespace sg
