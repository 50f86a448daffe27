/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages have been written since they were last looked at: asynchronous write protection by the kernel
   (userfaultfd and PAGEMAP_SCAN, Linux 6.7). A write to a protected page costs the program one fault, by whatever route
   of the kernel's memory management it comes. Routes beside it are gates: then nothing is protected. */
#ifndef STREAMGEMM_BLAS_PROTECTION_H
#define STREAMGEMM_BLAS_PROTECTION_H

#include <stdbool.h>
#include <stddef.h>

/* A range whose writes are watched. */
typedef struct sg_blas_guard {
  const char *first; /* NULL: none is watched */
  size_t bytes;
  bool is_lost;      /* the range is not watched any more, at least in part */
  bool is_disturbed; /* another guard of the same pages has found writes, and has protected them again */
  struct sg_blas_guard *next;
} sg_blas_guard;

/* What can be said of a range since it was last protected. */
typedef enum sg_blas_writes {
  SG_BLAS_UNWRITTEN,
  SG_BLAS_WRITTEN, /* the ranges that were reported */
  SG_BLAS_UNKNOWN  /* anything may have been written; the guard has ended if its `first` is NULL */
} sg_blas_writes;

/* Whether ranges can be protected at all here. The reason why not: "" if they can. */
const char *sg_blas_no_protection(void);
/* Watches a range, whose contents are to be read after that. false: it is not memory that can be, or a gate is closed.
   Any thread, as all functions here; one guard by one thread at a time. */
bool sg_blas_guard_start(sg_blas_guard *guard, const char *first, size_t bytes);
/* Protects the written pages again, and calls report(first, bytes, of) for each run of them. */
sg_blas_writes sg_blas_guard_check(sg_blas_guard *guard, void (*report)(const char *first, size_t bytes, void *of),
                                   void *of);
/* Writes to the range cost nothing any more. */
void sg_blas_guard_stop(sg_blas_guard *guard);
void sg_blas_protection_after_fork(void);

#endif
