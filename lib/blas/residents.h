/* SPDX-License-Identifier: Apache-2.0 */
/* The operands that have been used, with the device copies of some: a table, the memory of the copies, and counters. */
#ifndef STREAMGEMM_BLAS_RESIDENTS_H
#define STREAMGEMM_BLAS_RESIDENTS_H

#include <pthread.h>
#include <streamgemm/streamgemm.h>

#include "contents.h"
#include "protection.h"

/* An operand that was used, known by its address, sizes and pitch. */
typedef struct sg_blas_resident {
  sg_blas_lines key; /* first: NULL for a free place */
  int users;         /* calls that have found it and not left it */
  uint64_t last_use, use_before;
  /* Locked by a user: */
  pthread_mutex_t lock;
  bool has_sample;
  bool is_unproven; /* a call brings the copy up to date; until that has succeeded no other call may use it */
  bool is_unwanted; /* to be freed then */
  sg_blas_hash sample;
  unsigned skip, back_off; /* uses to do without a copy; those of the next time */
  unsigned hits;           /* uses of the copy since it was made whole */
  sg_buffer *buffer;       /* NULL: no copy */
  char *data;
  size_t pitch, bytes;
  sg_blas_hash *hashes; /* of each chunk of what the copy was made of */
  sg_blas_guard guard;  /* mode track: watches the operand while it is what the copy was made of */
  unsigned guard_after; /* uses of the copy before it is watched */
} sg_blas_resident;

/* What residency did in this process. */
typedef struct sg_blas_residency_statistics {
  uint64_t hits, changes;     /* uses of a copy, and operands that differed from theirs */
  uint64_t copies, evictions; /* copies made, and freed to make room */
  uint64_t guards, unwritten; /* operands watched, and uses of a copy of one that was not written */
  uint64_t bytes_avoided, bytes_hashed, bytes_verified, bytes_kept, limit;
  uint64_t host_reads; /* calls in mode auto that were predicted to gain nothing by their copies */
  double hash_seconds; /* of comparisons */
} sg_blas_residency_statistics;

/* At most `limit` bytes of copies. */
void sg_blas_residents_open(uint64_t limit);
/* The operand's place, with one user more; NULL: all places are in use. Any thread, as all functions here. */
sg_blas_resident *sg_blas_find_resident(const sg_blas_lines *key);
void sg_blas_leave_resident(sg_blas_resident *of);
/* Allocates the copy's memory; copies that were used less recently than the operand before this use go, if there is no
   room. false: there is none. A user, with the lock, as for the next one. */
bool sg_blas_allocate_copy(sg_blas_resident *of, sg_context *context, size_t pitch);
/* Frees the copy, whose memory the jobs that read it keep. */
void sg_blas_drop_copy(sg_blas_resident *of);
/* Frees the copies of operands that the range touches; NULL and 0: all. Whether there were any. */
bool sg_blas_drop_residents(const void *first, size_t bytes);
/* Whether the operand has a copy. */
bool sg_blas_has_copy(const sg_blas_lines *key);
/* Adds to the counters. */
void sg_blas_add_counts(const sg_blas_residency_statistics *more);
sg_blas_residency_statistics sg_blas_residency_counts(void);
/* In a child of fork there are none, and nothing of the parent's is closed. */
void sg_blas_residents_after_fork(void);

#endif
