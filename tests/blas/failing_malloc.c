/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations of the drop-in BLAS itself that fail: the one of the number that fail_malloc sets, counted from 1, or
   every one that is a multiple of it. */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
void fail_malloc(long number, int again);
long mallocs_failed(void);

static long wanted, seen, failed; /* wanted, seen, failed: atomic */
static int repeats;

void fail_malloc(long number, int again) {
  __atomic_store_n(&seen, 0, __ATOMIC_SEQ_CST);
  repeats = again;
  __atomic_store_n(&wanted, number, __ATOMIC_SEQ_CST);
}

long mallocs_failed(void) { return __atomic_load_n(&failed, __ATOMIC_SEQ_CST); }

static int fails(const void *caller) {
  static __thread int is_inside; /* dladdr may allocate */
  Dl_info owner;
  const long number = __atomic_load_n(&wanted, __ATOMIC_SEQ_CST);
  if (number == 0 || is_inside) return 0;
  is_inside = 1;
  const int is_ours =
      dladdr(caller, &owner) != 0 && owner.dli_fname != NULL && strstr(owner.dli_fname, "libstreamgemm-blas") != NULL;
  is_inside = 0;
  if (!is_ours) return 0;
  const long now = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
  if (repeats ? now % number != 0 : now != number) return 0;
  __atomic_add_fetch(&failed, 1, __ATOMIC_SEQ_CST);
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t bytes) { return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}
