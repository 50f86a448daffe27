/* SPDX-License-Identifier: Apache-2.0 */
/* gemmt in f64 by its definition, where the CPU BLAS has none. */
#include <stddef.h>
#include <stdint.h>

void cblas_dgemmt(int order, int uplo, int transa, int transb, int32_t n, int32_t k, double alpha, const double *a,
                  int32_t lda, const double *b, int32_t ldb, double beta, double *c, int32_t ldc);
void dgemmt_(const char *uplo, const char *transa, const char *transb, const int32_t *n, const int32_t *k,
             const double *alpha, const double *a, const int32_t *lda, const double *b, const int32_t *ldb,
             const double *beta, double *c, const int32_t *ldc);

static size_t place(int is_row_major, int32_t row, int32_t column, int32_t ld) {
  return is_row_major ? (size_t)row * (size_t)ld + (size_t)column : (size_t)column * (size_t)ld + (size_t)row;
}

void cblas_dgemmt(int order, int uplo, int transa, int transb, int32_t n, int32_t k, double alpha, const double *a,
                  int32_t lda, const double *b, int32_t ldb, double beta, double *c, int32_t ldc) {
  const int by_rows = order == 101;
  for (int32_t i = 0; i < n; ++i)
    for (int32_t j = 0; j < n; ++j) {
      if (uplo == 121 ? i > j : i < j) continue;
      double sum = 0;
      for (int32_t l = 0; l < k; ++l)
        sum += a[transa == 111 ? place(by_rows, i, l, lda) : place(by_rows, l, i, lda)] *
               b[transb == 111 ? place(by_rows, l, j, ldb) : place(by_rows, j, l, ldb)];
      double *const to = &c[place(by_rows, i, j, ldc)];
      *to = alpha * sum + (beta == 0 ? 0 : beta * *to);
    }
}

static int is(const char *letter, char upper) { return *letter == upper || *letter == upper + 32; }

void dgemmt_(const char *uplo, const char *transa, const char *transb, const int32_t *n, const int32_t *k,
             const double *alpha, const double *a, const int32_t *lda, const double *b, const int32_t *ldb,
             const double *beta, double *c, const int32_t *ldc) {
  cblas_dgemmt(102, is(uplo, 'U') ? 121 : 122, is(transa, 'N') ? 111 : 112, is(transb, 'N') ? 111 : 112, *n, *k, *alpha,
               a, *lda, b, *ldb, *beta, c, *ldc);
}
