/* SPDX-License-Identifier: Apache-2.0 */
/* What a call that stays on the CPU costs more through the drop-in BLAS: square cblas_dgemm of small sizes, by its name
   and by the CPU BLAS's own address, in turn. Each round is a pair of runs next to each other in time; the figures are
   medians over the rounds.

   usage: LD_PRELOAD=.../libstreamgemm-blas.so.1 blas_hop [ROUNDS] */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void gemm_function(int order, int transa, int transb, int32_t m, int32_t n, int32_t k, double alpha,
                           const double *a, int32_t lda, const double *b, int32_t ldb, double beta, double *c,
                           int32_t ldc);
typedef void *find_function(const char *name);

static double matrix_a[64 * 64], matrix_b[64 * 64], matrix_c[64 * 64];

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Nanoseconds of a call, over enough calls for a tenth of a millisecond. */
static double time_of(gemm_function *gemm, int n) {
  const int calls = 20 + 200000 / (50 + n * n * n / 4);
  const double start = now();
  for (int i = 0; i < calls; ++i) gemm(102, 111, 111, n, n, n, 1.0, matrix_a, 64, matrix_b, 64, 0.0, matrix_c, 64);
  return (now() - start) / calls;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1001;
  gemm_function *through, *direct;
  find_function *find;
  *(void **)&find = dlsym(RTLD_DEFAULT, "sg_blas_cpu_function");
  *(void **)&through = dlsym(RTLD_DEFAULT, "cblas_dgemm");
  if (find == NULL || through == NULL || rounds < 1)
    return fprintf(stderr, "usage: LD_PRELOAD=.../libstreamgemm-blas.so.1 blas_hop [ROUNDS]\n"), 2;
  *(void **)&direct = find("cblas_dgemm");
  if (direct == NULL) return fprintf(stderr, "no CPU BLAS has cblas_dgemm\n"), 1;
  double *const values = malloc(3 * (size_t)rounds * sizeof *values);
  if (values == NULL) return 1;
  for (int i = 0; i < 64 * 64; ++i) matrix_a[i] = matrix_b[i] = (double)(i % 7);
  printf(
      "   n  direct ns  through ns  difference ns   ratio   (medians of %d pairs; difference and ratio: of each "
      "pair)\n",
      rounds);
  static const int sizes[] = {1, 2, 4, 8, 16, 24, 32, 64};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; ++s) {
    double *const first = values, *const second = values + rounds, *const differences = values + 2 * rounds;
    for (int i = 0; i < rounds; ++i) { /* which of the two is first changes with the round */
      if (i % 2 == 0) first[i] = time_of(direct, sizes[s]);
      second[i] = time_of(through, sizes[s]);
      if (i % 2 == 1) first[i] = time_of(direct, sizes[s]);
      differences[i] = second[i] - first[i];
    }
    const double difference = median(differences, rounds), alone = median(first, rounds), with = median(second, rounds);
    printf("%4d %10.1f %11.1f %14.1f %7.3f\n", sizes[s], alone, with, difference, (alone + difference) / alone);
  }
  free(values);
  return 0;
}
