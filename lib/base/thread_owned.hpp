// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <new>

namespace sg {

// A thread-local T. Not a thread_local variable: that would use every thread's stack, and be read after its
// destruction, because exit handlers and other libraries' thread destructors run after it; and glibc aborts the process
// if it has no memory to register a thread_local's destructor. (A T first requested during thread exit, and the main
// thread's, are never freed.)
template <class T>
class thread_owned {
 public:
  // The calling thread's T, made on the first call; nullptr if the thread is exiting or memory is out.
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
  struct key {  // never deleted: the library is never unloaded
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
