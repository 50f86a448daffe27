/* SPDX-License-Identifier: Apache-2.0 */
/* A CPU BLAS of a few names, or a dispatcher, for the tests of the search for the CPU BLAS. It stores a number of its
   own in the first element of C instead of a product. */
#include <stdint.h>

#ifndef FAKE_INTEGER
#define FAKE_INTEGER int32_t
#endif

void FAKE_NAME(int order, int transa, int transb, FAKE_INTEGER m, FAKE_INTEGER n, FAKE_INTEGER k, double alpha,
               const double *a, FAKE_INTEGER lda, const double *b, FAKE_INTEGER ldb, double beta, double *c,
               FAKE_INTEGER ldc);

void FAKE_NAME(int order, int transa, int transb, FAKE_INTEGER m, FAKE_INTEGER n, FAKE_INTEGER k, double alpha,
               const double *a, FAKE_INTEGER lda, const double *b, FAKE_INTEGER ldb, double beta, double *c,
               FAKE_INTEGER ldc) {
  (void)order, (void)transa, (void)transb, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)lda, (void)b,
      (void)ldb, (void)beta, (void)ldc;
  c[0] = FAKE_NUMBER;
}

#ifdef FAKE_MARK
void FAKE_MARK(void);
void FAKE_MARK(void) {}
#endif
