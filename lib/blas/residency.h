/* SPDX-License-Identifier: Apache-2.0 */
/* Device copies of operands that calls read again and again. A copy is used only if the operand's contents, hashed
   during the call, are those that the copy was made of: by whatever route memory is written, a copy that differs from
   its operand is not used.

   What happens to an operand that a call reads:
   - first use: it is read from host memory as ever, and a sample of it is hashed;
   - next use: if the sample is the same, the operand is copied to the device whole, hashed meanwhile, and the copy is
     kept; else as the first;
   - later uses: it is hashed, and the chunks that differ are copied again. If more than half of them differ and the
     copy has been used less than twice, the copy is freed, and the next 1, 2, 4 ... 64 uses do without. */
#ifndef STREAMGEMM_BLAS_RESIDENCY_H
#define STREAMGEMM_BLAS_RESIDENCY_H

#include "residents.h"
#include "settings.h"

/* A device copy that is lent to one call. */
typedef struct sg_blas_loan {
  sg_blas_resident *of; /* NULL: none */
  sg_buffer *buffer;
  void *data; /* NULL: the operand is to be read from host memory */
  size_t pitch;
  bool is_maker; /* this call made the copy or brought it up to date */
  sg_job **uploads;
  size_t upload_count, upload_bytes;
} sg_blas_loan;

/* The device is open: copies may take `limit` bytes of its memory. */
void sg_blas_residency_open(sg_context *context, const sg_blas_settings *settings, bool is_unified, uint64_t limit);
/* Lends the copy of an operand that a call reads; `data` stays NULL if there is none. The operand is in pageable memory
   and is not written during the call. Any thread; a call of repay follows in any case, after the call's job. */
void sg_blas_borrow(const sg_blas_lines *operand, sg_blas_loan *loan);
void sg_blas_repay(sg_blas_loan *loan);
/* Whether a use is expected to find a copy, and the seconds that it takes to check it: 0 until some were timed. */
bool sg_blas_is_resident(const sg_blas_lines *operand, double *seconds);
void sg_blas_residency_after_fork(void);

#endif
