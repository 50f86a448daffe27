/* SPDX-License-Identifier: Apache-2.0
 * One GEMM by XKBlas from pinned host memory to pinned host memory, on the first GPUs of the machine. It is a process
 * of its own: XKBlas takes its tile size and its devices when it starts, and nearly all of their memory. Usage: xkblas
 * LIBXKBLAS f32|f64 M N K GPUS TILE [RUNS]. Prints a line; exits with 1 if a row of a result is wrong. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_RUNS 100

/* As its header has them: 111 is CblasNoTrans. */
typedef int gemm_fn(int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int lda, const void *b,
                    int ldb, const void *beta, void *c, int ldc);
static int (*xk_init)(void), (*xk_finalize)(void), (*xk_sync)(void), (*xk_forget)(void), (*xk_gpus)(void);
static int (*xk_coherent)(int uplo, int flag, size_t m, size_t n, void *data, size_t ld, size_t size);
static void *(*xk_malloc)(size_t bytes); /* pinned */
static gemm_fn *xk_gemm;

static void *library;

static void *symbol(const char *name) {
  void *const found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "xkblas: %s\n", dlerror());
    exit(2);
  }
  return found;
}

static int positive(const char *name, const char *text) {
  char *end;
  const long value = strtol(text, &end, 10);
  if (*end || value < 1 || value > INT32_MAX) {
    fprintf(stderr, "xkblas: %s is '%s', not a positive int\n", name, text);
    exit(2);
  }
  return (int)value;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t drawn(void) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

static int compare(const void *x, const void *y) {
  const double difference = *(const double *)x - *(const double *)y;
  return (difference > 0) - (difference < 0);
}

static double get(const void *data, int is_f32, size_t at) {
  return is_f32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static void set(void *data, int is_f32, size_t at, double value) {
  if (is_f32)
    ((float *)data)[at] = (float)value;
  else
    ((double *)data)[at] = value;
}

int main(int argc, char **argv) {
  if (argc < 8 || argc > 9 || (strcmp(argv[2], "f32") != 0 && strcmp(argv[2], "f64") != 0)) {
    fprintf(stderr, "usage: xkblas LIBXKBLAS f32|f64 M N K GPUS TILE [RUNS]\n");
    return 2;
  }
  const int is_f32 = strcmp(argv[2], "f32") == 0;
  const int m = positive("M", argv[3]), n = positive("N", argv[4]), k = positive("K", argv[5]);
  const int gpus = positive("GPUS", argv[6]), tile = positive("TILE", argv[7]);
  const int runs = argc > 8 ? positive("RUNS", argv[8]) : 5;
  if (runs > MAX_RUNS) {
    fprintf(stderr, "xkblas: RUNS is %d, at most %d\n", runs, MAX_RUNS);
    return 2;
  }
  setenv("XKBLAS_NGPUS", argv[6], 1);
  setenv("XKBLAS_TILE_SIZE", argv[7], 1);
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "xkblas: %s\n", dlerror());
    return 2;
  }
  *(void **)&xk_init = symbol("xkblas_init");
  *(void **)&xk_finalize = symbol("xkblas_finalize");
  *(void **)&xk_sync = symbol("xkblas_sync");
  *(void **)&xk_forget = symbol("xkblas_memory_invalidate_caches");
  *(void **)&xk_gpus = symbol("xkblas_get_ngpus");
  *(void **)&xk_coherent = symbol("xkblas_memory_coherent_async");
  *(void **)&xk_malloc = symbol("xkblas_malloc");
  *(void **)&xk_gemm = symbol(is_f32 ? "xkblas_sgemm_async" : "xkblas_dgemm_async");

  xk_init();
  /* Its threads may still be starting: a GEMM right away crashed now and then in kaapi_dsm_findaccess_on_node. */
  nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
  if (xk_gpus() != gpus) {
    fprintf(stderr, "xkblas: GPUS is %d; XKBlas uses %d\n", gpus, xk_gpus());
    return 2;
  }
  const size_t size = is_f32 ? sizeof(float) : sizeof(double), rows = (size_t)m, cols = (size_t)n, depth = (size_t)k;
  void *const a = xk_malloc(rows * depth * size), *const b = xk_malloc(depth * cols * size);
  void *const c = xk_malloc(rows * cols * size);
  if (!a || !b || !c) {
    fprintf(stderr, "xkblas: no pinned memory for the operands\n");
    return 2;
  }
  /* Sums in any order are exact in f32, and differ in tf32, which has 11 bits: |a| to 4096, b is -1, 0 or 1. */
  for (size_t i = 0; i < rows * depth; ++i) set(a, is_f32, i, (double)(drawn() % 8193) - 4096);
  for (size_t i = 0; i < depth * cols; ++i) set(b, is_f32, i, (double)(drawn() % 3) - 1);
  const size_t row = (size_t)time(NULL) % rows;
  double *const expected = calloc(cols, sizeof *expected), *const row_of_a = malloc(depth * sizeof *row_of_a);
  if (!expected || !row_of_a) return 2;
  for (size_t p = 0; p < depth; ++p) row_of_a[p] = get(a, is_f32, row + p * rows);
  for (size_t j = 0; j < cols; ++j)
    for (size_t p = 0; p < depth; ++p) expected[j] += row_of_a[p] * get(b, is_f32, p + j * depth);

  double seconds[MAX_RUNS];
  const float one_f32 = 1, zero_f32 = 0;
  const double one_f64 = 1, zero_f64 = 0;
  const void *const one = is_f32 ? (const void *)&one_f32 : &one_f64;
  const void *const zero = is_f32 ? (const void *)&zero_f32 : &zero_f64;
  size_t wrong = 0;
  for (int run = -1; run < runs; ++run) { /* the first is not measured */
    for (size_t j = 0; j < cols; ++j) set(c, is_f32, row + j * rows, NAN);
    const double start = now();
    const int failed = xk_gemm(111, 111, m, n, k, one, a, m, b, k, zero, c, m) ||
                       xk_coherent(0, 0, rows, cols, c, rows, size) || xk_sync();
    if (run >= 0) seconds[run] = now() - start;
    if (failed) {
      fprintf(stderr, "xkblas: the GEMM failed\n");
      return 1;
    }
    xk_forget(); /* the next run brings its operands from the host again */
    for (size_t j = 0; j < cols; ++j) wrong += !(get(c, is_f32, row + j * rows) == expected[j]);
  }
  qsort(seconds, (size_t)runs, sizeof *seconds, compare);
  const double median = seconds[runs / 2];
  printf("%s %dx%dx%d pinned, %d GPUs, tile %d: %.2f ms %.1f Tflop/s (%.2f to %.2f ms, %d runs), row %zu %s\n", argv[2],
         m, n, k, gpus, tile, median * 1e3, 2e-12 * m * n * k / median, seconds[0] * 1e3, seconds[runs - 1] * 1e3, runs,
         row, wrong ? "WRONG" : "exact");
  fflush(stdout);
  xk_finalize();
  return wrong != 0;
}
