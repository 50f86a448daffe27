/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: counts the allocations and thread starts of the process and refuses the chosen one. Some requests are let
 * through: those on behalf of libgomp and of the dynamic linker, which abort by their own policy, and of oneDNN (2.6),
 * which does not check for refused requests.
 */
#define _GNU_SOURCE
#include "malloc_shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

#define EXPORT __attribute__((visibility("default")))

static int window_is_open;
/* Of a thread that finds out who requests: unwinding may allocate. Not the window itself, which another thread may
 * close. */
static __thread int looks_up __attribute__((tls_model("initial-exec")));
static struct shim_plan plan;
static long allocations, threads, refused, live;

/* Requests made by these libraries, or by functions that they call, are let through. */
static const char *const sparing[] = {"libgomp", "ld-linux", "libdnnl"};

/* The address ranges of their code. Each request has its own: several threads' requests are refused at a time. */
enum { MOST_RANGES = 16 };
struct ranges {
  struct {
    uintptr_t begin, end;
  } of[MOST_RANGES];
  int count;
};

static int spare(struct dl_phdr_info *library, size_t size, void *user) {
  struct ranges *spared = user;
  size_t which;
  int i;
  (void)size;
  for (which = 0; which < sizeof sparing / sizeof sparing[0]; ++which) {
    if (!strstr(library->dlpi_name, sparing[which])) continue;
    for (i = 0; i < library->dlpi_phnum && spared->count < MOST_RANGES; ++i) {
      const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
      if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) continue;
      spared->of[spared->count].begin = library->dlpi_addr + segment->p_vaddr;
      spared->of[spared->count].end = spared->of[spared->count].begin + segment->p_memsz;
      ++spared->count;
    }
  }
  return 0;
}

static int is_spared(const struct ranges *spared, const void *frame) {
  int i;
  for (i = 0; i < spared->count; ++i)
    if ((uintptr_t)frame >= spared->of[i].begin && (uintptr_t)frame < spared->of[i].end) return 1;
  return 0;
}

/* Counts one request; 1: it is the one to refuse. With SHIM_TRACE in the environment it prints who requested it. */
static int refuse(long *count, long chosen, int and_later) {
  const long number = __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
  struct ranges spared = {{{0, 0}}, 0};
  void *frames[40];
  int depth, i, let_through = 0;
  if (!chosen || (number != chosen && !(and_later && number > chosen))) return 0;
  looks_up = 1;
  dl_iterate_phdr(spare, &spared); /* now: oneDNN may have been loaded meanwhile */
  depth = backtrace(frames, 40);
  for (i = 0; i < depth; ++i) let_through |= is_spared(&spared, frames[i]);
  if (getenv("SHIM_TRACE") && !let_through) backtrace_symbols_fd(frames, depth, STDERR_FILENO);
  looks_up = 0;
  if (let_through) return 0;
  __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
  return 1;
}

static int refuse_allocation(void) {
  if (looks_up || !__atomic_load_n(&window_is_open, __ATOMIC_ACQUIRE)) return 0;
  if (!refuse(&allocations, plan.allocation, plan.all_from_there)) return 0;
  errno = ENOMEM;
  return 1;
}

static void *counted(void *memory) {
  if (memory) __atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
  return memory;
}

EXPORT void shim_open(struct shim_plan wanted) {
  plan = wanted;
  allocations = threads = refused = 0;
  __atomic_store_n(&window_is_open, 1, __ATOMIC_RELEASE);
}

EXPORT struct shim_report shim_close(void) {
  struct shim_report report;
  __atomic_store_n(&window_is_open, 0, __ATOMIC_RELEASE);
  report.allocations = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
  report.threads = __atomic_load_n(&threads, __ATOMIC_RELAXED);
  report.refused = __atomic_load_n(&refused, __ATOMIC_RELAXED);
  return report;
}

EXPORT long shim_live(void) { return __atomic_load_n(&live, __ATOMIC_RELAXED); }

EXPORT void *malloc(size_t size) { return refuse_allocation() ? NULL : counted(__libc_malloc(size)); }
EXPORT void *calloc(size_t count, size_t size) {
  return refuse_allocation() ? NULL : counted(__libc_calloc(count, size));
}
EXPORT void *realloc(void *old, size_t size) {
  void *memory;
  if (refuse_allocation()) return NULL;
  memory = __libc_realloc(old, size);
  if (!old) counted(memory);
  return memory;
}
EXPORT void *memalign(size_t alignment, size_t size) {
  return refuse_allocation() ? NULL : counted(__libc_memalign(alignment, size));
}
EXPORT void *aligned_alloc(size_t alignment, size_t size) {
  return refuse_allocation() ? NULL : counted(__libc_memalign(alignment, size));
}
EXPORT int posix_memalign(void **out, size_t alignment, size_t size) {
  void *memory;
  if (refuse_allocation()) return ENOMEM;
  memory = counted(__libc_memalign(alignment, size));
  if (!memory) return ENOMEM;
  *out = memory;
  return 0;
}
EXPORT void free(void *memory) {
  if (memory) __atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
  __libc_free(memory);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  if (__atomic_load_n(&window_is_open, __ATOMIC_ACQUIRE) && refuse(&threads, plan.thread, 0)) return EAGAIN;
  return real(thread, attributes, body, argument);
}
