/* SPDX-License-Identifier: Apache-2.0 */
/* A CPU BLAS with 64-bit integers whose gemm has a suffix and whose gemm_batch_strided has none, as OpenBLAS's builds
   for Python; and gemm_batch with 32-bit integers in another library (FAKE_NARROW), which has a gemm of that name. They
   store what they were given instead of computing. */
#include <stddef.h>
#include <stdint.h>

#ifdef FAKE_NARROW
void cblas_dgemm(void);
void cblas_dgemm(void) {}
void cblas_dgemm_batch(int order, const int *transa, const int *transb, const int32_t *m, const int32_t *n,
                       const int32_t *k, const double *alpha, const double **a, const int32_t *lda, const double **b,
                       const int32_t *ldb, const double *beta, double **c, const int32_t *ldc, int32_t count,
                       const int32_t *sizes);
void cblas_dgemm_batch(int order, const int *transa, const int *transb, const int32_t *m, const int32_t *n,
                       const int32_t *k, const double *alpha, const double **a, const int32_t *lda, const double **b,
                       const int32_t *ldb, const double *beta, double **c, const int32_t *ldc, int32_t count,
                       const int32_t *sizes) {
  (void)transa, (void)transb, (void)n, (void)k, (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)ldc;
  c[0][0] = order + 1000 * m[count - 1] + 1e6 * sizes[count - 1] + alpha[count - 1];
}
#else
void cblas_dgemm64_(void);
void cblas_dgemm64_(void) {}
void cblas_dgemm_batch_strided(int order, int transa, int transb, int64_t m, int64_t n, int64_t k, double alpha,
                               const double *a, int64_t lda, int64_t stridea, const double *b, int64_t ldb,
                               int64_t strideb, double beta, double *c, int64_t ldc, int64_t stridec, int64_t count);
void cblas_dgemm_batch_strided(int order, int transa, int transb, int64_t m, int64_t n, int64_t k, double alpha,
                               const double *a, int64_t lda, int64_t stridea, const double *b, int64_t ldb,
                               int64_t strideb, double beta, double *c, int64_t ldc, int64_t stridec, int64_t count) {
  (void)order, (void)transa, (void)transb, (void)m, (void)n, (void)k, (void)a, (void)lda, (void)b, (void)ldb;
  (void)stridea, (void)ldc, (void)count;
  c[0] = (double)strideb, c[1] = (double)stridec, c[2] = alpha, c[3] = beta;
}
#endif
