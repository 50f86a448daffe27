/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a blocking GEMM in C, one after another: the baseline of the other languages, which run the same program.
 * Prints one line of JSON: microseconds by case. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>
#include <time.h>

enum { ROUNDS = 15, LARGEST = 512 };

static sg_context *context;
static double a[LARGEST * LARGEST], b[LARGEST * LARGEST], c[LARGEST * LARGEST]; /* of f32, too */

static void check(sg_status status) {
  if (status == SG_STATUS_OK) return;
  fprintf(stderr, "%s: %s\n", sg_status_name(status), sg_last_error_message());
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *x, const void *y) {
  const double d = *(const double *)x - *(const double *)y;
  return (d > 0) - (d < 0);
}

/* Microseconds for each of a row of calls: the median of the rounds. */
static double measure(sg_dtype dtype, int64_t n) {
  const sg_matrix square = {NULL, n, n, n, dtype, SG_LAYOUT_ROW_MAJOR};
  const double most = 2e7 / (2.0 * (double)n * (double)n * (double)n);
  const int calls = most < 1 ? 1 : most > 2000 ? 2000 : (int)most;
  double rounds[ROUNDS];
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = desc.b = desc.c = square;
  desc.a.data = a;
  desc.b.data = b;
  desc.c.data = c;
  for (int64_t i = 0; i < n * n; ++i) {
    if (dtype == SG_DTYPE_F32)
      ((float *)a)[i] = ((float *)b)[i] = 1;
    else
      a[i] = b[i] = 1;
  }
  for (int round = 0; round < ROUNDS; ++round) {
    const double start = now();
    for (int i = 0; i < calls; ++i) check(sg_gemm(context, &desc, NULL));
    rounds[round] = (now() - start) / calls;
  }
  qsort(rounds, ROUNDS, sizeof *rounds, by_value);
  return rounds[ROUNDS / 2];
}

int main(void) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  options.device = "cpu";
  check(sg_context_create(&options, &context));
  printf("{\"language\": \"C\"");
  for (int type = 0; type < 2; ++type)
    for (int n = 4; n <= LARGEST; n *= 2)
      printf(", \"%s %d^3\": %.3f", type ? "f64" : "f32", n, measure(type ? SG_DTYPE_F64 : SG_DTYPE_F32, n));
  printf("}\n");
  check(sg_context_release(context));
  return 0;
}
