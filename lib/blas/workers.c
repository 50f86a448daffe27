/* SPDX-License-Identifier: Apache-2.0 */
#include "workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "rates.h"

enum { THREADS_AT_MOST = 16, STACK_BYTES = 256 * 1024 };

static pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER; /* held by the caller whom the workers help */
static bool are_started;                                  /* under owner */
static int workers;                                       /* under owner */
static pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER, is_done = PTHREAD_COND_INITIALIZER;
static struct {
  void (*task)(size_t index, void *of);
  void *of;
  size_t count, next; /* next: atomic */
  uint64_t round;
  int busy; /* workers that have not finished the round */
} work;     /* under work_lock */

static void take_part(void) {
  for (size_t i; (i = __atomic_fetch_add(&work.next, 1, __ATOMIC_RELAXED)) < work.count;) work.task(i, work.of);
}

static void *help(void *unused) {
  pthread_mutex_lock(&work_lock);
  for (uint64_t seen = 0;;) {
    while (work.round == seen) pthread_cond_wait(&has_work, &work_lock);
    seen = work.round;
    pthread_mutex_unlock(&work_lock);
    take_part();
    pthread_mutex_lock(&work_lock);
    if (--work.busy == 0) pthread_cond_signal(&is_done);
  }
  return unused;
}

/* Signals are the program's affair: workers get none. */
static void start_workers(void) {
  are_started = true;
  const int wanted = sg_blas_cpu_threads() < THREADS_AT_MOST ? sg_blas_cpu_threads() : THREADS_AT_MOST;
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_t thread;
    while (workers + 1 < wanted && pthread_create(&thread, &attributes, help, NULL) == 0) ++workers;
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void sg_blas_for_each(size_t count, void (*task)(size_t index, void *of), void *of) {
  const bool has_help = count > 1 && pthread_mutex_trylock(&owner) == 0;
  if (has_help && !are_started) start_workers();
  if (has_help && workers > 0) {
    pthread_mutex_lock(&work_lock);
    work.task = task, work.of = of, work.count = count, work.busy = workers;
    __atomic_store_n(&work.next, 0, __ATOMIC_RELAXED);
    ++work.round;
    pthread_cond_broadcast(&has_work);
    pthread_mutex_unlock(&work_lock);
    take_part();
    pthread_mutex_lock(&work_lock);
    while (work.busy > 0) pthread_cond_wait(&is_done, &work_lock);
    pthread_mutex_unlock(&work_lock);
  } else {
    for (size_t i = 0; i < count; ++i) task(i, of);
  }
  if (has_help) pthread_mutex_unlock(&owner);
}

void sg_blas_workers_after_fork(void) {
  pthread_mutex_init(&owner, NULL);
  are_started = true; /* a child uses the CPU BLAS only */
  workers = 0;
}
