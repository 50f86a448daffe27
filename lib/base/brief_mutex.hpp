// SPDX-License-Identifier: Apache-2.0
// A mutex for sections that are mostly shorter than a microsecond: who finds it taken asks some more times before it
// sleeps, because sleeping and being woken takes longer than such a section. Meets BasicLockable.
#pragma once

#include <pthread.h>

namespace sg {

class brief_mutex {
 public:
  brief_mutex() noexcept = default;
  brief_mutex(const brief_mutex &) = delete;
  brief_mutex &operator=(const brief_mutex &) = delete;

  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

 private:
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
  pthread_mutex_t mutex_ = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
#endif
};

}  // namespace sg
