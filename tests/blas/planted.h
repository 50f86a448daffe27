/* SPDX-License-Identifier: Apache-2.0 */
/* Which defect a drop-in BLAS with planted defects has (../random/plant.py). */
#ifndef STREAMGEMM_TEST_BLAS_PLANTED_H
#define STREAMGEMM_TEST_BLAS_PLANTED_H

#include <stdlib.h>
#include <string.h>

static inline int is_planted(const char *defect) {
  const char *const planted = getenv("PLANTED_DEFECT");
  return planted != NULL && strcmp(planted, defect) == 0;
}

#endif
