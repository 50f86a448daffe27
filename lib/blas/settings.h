/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables of the dispatcher, read once at the first call of level 3. A value that is not valid is
   named on standard error, and the default is used. A setuid program sees none of them. */
#ifndef STREAMGEMM_BLAS_SETTINGS_H
#define STREAMGEMM_BLAS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

/* SG_BLAS_RESIDENCY: whether operands stay on the device between calls. */
typedef enum sg_blas_residency {
  SG_BLAS_RESIDENCY_AUTO,  /* those of which it is worth it */
  SG_BLAS_RESIDENCY_OFF,   /* none */
  SG_BLAS_RESIDENCY_HASH,  /* all */
  SG_BLAS_RESIDENCY_TRACK, /* all, and the kernel says what was written, where it can */
  SG_BLAS_RESIDENCY_VERIFY /* all, and each copy is read back and compared before its use */
} sg_blas_residency;

typedef struct sg_blas_settings {
  bool is_on;                  /* SG_BLAS and SG_BLAS_ONLY */
  bool serves_lapack;          /* SG_BLAS_LAPACK */
  bool has_minimum;            /* SG_BLAS_MIN is a number: */
  double minimum;              /* calls of at least this work go to the device */
  char device[64];             /* SG_DEVICE; "": auto */
  uint64_t memory_bytes;       /* SG_BLAS_MEMORY in bytes; 0: by percent */
  double memory_percent;       /* 0: neither was set */
  int compute;                 /* SG_BLAS_COMPUTE for f32, an sg_compute */
  sg_blas_residency residency; /* SG_BLAS_RESIDENCY */
  int pblas_block;             /* SG_PBLAS_NB; 0: not set */
  const char *report;          /* SG_BLAS_REPORT; NULL: calls are not counted */
  int local_rank, local_ranks; /* of this process among those of an MPI program on this machine; -1, 0: unknown */
} sg_blas_settings;

void sg_blas_read_settings(sg_blas_settings *out);

/* Whether a colon-separated list has the word. */
bool sg_blas_list_has(const char *list, const char *word);

#endif
