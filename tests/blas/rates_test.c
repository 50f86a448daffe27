/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the choice between the CPU and the device: rates and the least work, as functions of numbers. */
#include "rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;

static void expect(int is_so, const char *what, int line) {
  if (is_so) return;
  ++failures;
  fprintf(stderr, "rates_test.c:%d: not so: %s\n", line, what);
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

static int near(double value, double wanted) { return fabs(value - wanted) <= 1e-9 * fabs(wanted); }
static double side_of(double work) { return cbrt(work); }

/* A device with a fixed time and a rate. */
typedef struct device {
  double start, rate;
} device;

static double seconds_of(int n, void *of) { return ((device *)of)->start + (double)n * n * n / ((device *)of)->rate; }
static double unknown(int n, void *of) { return (void)n, (void)of, 0; }

static void test_first_rate(void) {
  EXPECT(near(sg_blas_first_rate('d', 1, 64), 0.6 * 2.5e9 * 16));
  EXPECT(near(sg_blas_first_rate('s', 1, 64), 2 * sg_blas_first_rate('d', 1, 64)));
  EXPECT(near(sg_blas_first_rate('z', 1, 64), sg_blas_first_rate('d', 1, 64) / 4));
  EXPECT(near(sg_blas_first_rate('c', 16, 32), sg_blas_first_rate('s', 16, 32) / 4));
  EXPECT(near(sg_blas_first_rate('d', 16, 32), 8 * sg_blas_first_rate('d', 1, 64)));
  EXPECT(sg_blas_vector_bytes() == 16 || sg_blas_vector_bytes() == 32 || sg_blas_vector_bytes() == 64);
}

static void test_threads(void) {
  setenv("OMP_NUM_THREADS", "1", 1);
  EXPECT(sg_blas_cpu_threads() == 1);
  setenv("OPENBLAS_NUM_THREADS", "1000000", 1);
  const int all = sg_blas_cpu_threads();
  EXPECT(all >= 1 && all < 1000000);
  unsetenv("OPENBLAS_NUM_THREADS");
  setenv("OMP_NUM_THREADS", "none", 1);
  EXPECT(sg_blas_cpu_threads() == all);
  unsetenv("OMP_NUM_THREADS");
}

static void test_learning(void) {
  const double thick = 1000, first = sg_blas_rate_of('d', thick), other = sg_blas_rate_of('s', thick), thin = 100;
  EXPECT(near(first, sg_blas_first_rate('d', sg_blas_cpu_threads(), sg_blas_vector_bytes())));
  sg_blas_learn('d', thick, 1e12, 0.9e-3); /* too short a call */
  EXPECT(near(sg_blas_rate_of('d', thick), first));
  sg_blas_learn('d', thick, 4 * first, 1);
  EXPECT(near(sg_blas_rate_of('d', thick), 2.5 * first));
  for (int i = 0; i < 60; ++i) sg_blas_learn('d', thick, 5e9, 0.5);
  EXPECT(fabs(sg_blas_rate_of('d', thick) / 1e10 - 1) < 1e-3);
  EXPECT(near(sg_blas_rate_of('d', 256), sg_blas_rate_of('d', thick)));
  EXPECT(near(sg_blas_rate_of('s', thick), other));
  EXPECT(near(sg_blas_rate_of('d', 255), first));
  /* Thin calls, from 64 to 127, from 32 to 63, and below. */
  for (int i = 0; i < 60; ++i) sg_blas_learn('d', thin, 1e9, 0.5);
  EXPECT(fabs(sg_blas_rate_of('d', 64) / 2e9 - 1) < 1e-3 && near(sg_blas_rate_of('d', 64), sg_blas_rate_of('d', 127)));
  EXPECT(near(sg_blas_rate_of('d', 128), first) && near(sg_blas_rate_of('d', 63), first) &&
         near(sg_blas_rate_of('d', 1), first));
  sg_blas_learn('d', 31, 2 * first, 1);
  EXPECT(near(sg_blas_rate_of('d', 1), 1.5 * first) && near(sg_blas_rate_of('d', 32), first));
}

static void test_slowdown(void) {
  EXPECT(sg_blas_slowdown(true) == 1 && sg_blas_slowdown(false) == 1);
  for (int i = 0; i < 2; ++i) sg_blas_learn_device(true, 1, 100); /* the first calls start threads */
  EXPECT(sg_blas_slowdown(true) == 1);
  sg_blas_learn_device(true, 1, 2);
  EXPECT(near(sg_blas_slowdown(true), 1.5));
  sg_blas_learn_device(true, 1e-5, 1); /* too short a call */
  sg_blas_learn_device(true, 1, 0);    /* nothing ran */
  EXPECT(near(sg_blas_slowdown(true), 1.5));
  for (int i = 0; i < 60; ++i) sg_blas_learn_device(true, 1, 100);
  EXPECT(fabs(sg_blas_slowdown(true) / 4 - 1) < 1e-3);
  for (int i = 0; i < 60; ++i) sg_blas_learn_device(true, 1, 0.1);
  EXPECT(fabs(sg_blas_slowdown(true) - 1) < 1e-3);
  EXPECT(sg_blas_slowdown(false) == 1);
}

static void test_cheap_floor(void) {
  /* One core, and sixteen: the faster the CPU, the more work a device needs. Never below 128^3. */
  const double one = side_of(sg_blas_cheap_floor('d', sg_blas_first_rate('d', 1, 64)));
  const double sixteen = side_of(sg_blas_cheap_floor('d', sg_blas_first_rate('d', 16, 64)));
  EXPECT(fabs(one - 128) < 1);
  EXPECT(sixteen > 250 && sixteen < 450);
  EXPECT(near(sg_blas_cheap_floor('d', 1e3), 128.0 * 128 * 128));
  EXPECT(near(sg_blas_cheap_floor('d', 1e18), 8192.0 * 8192 * 8192));
  EXPECT(sg_blas_cheap_floor('z', 1e11) > sg_blas_cheap_floor('s', 1e11));
}

static void test_square_floor(void) {
  /* 0.1 ms + n^3 / 1e12 is below 0.9 n^3 / 1e11 from n = 232 on. */
  device fast = {1e-4, 1e12}, slow = {1e-4, 1e10}, free_of_cost = {1e-12, 1e30};
  const double n = side_of(sg_blas_square_floor(1e11, seconds_of, &fast));
  EXPECT(n >= 231 && n <= 248);
  EXPECT(near(sg_blas_square_floor(1e11, seconds_of, &slow), 8192.0 * 8192 * 8192));
  EXPECT(near(sg_blas_square_floor(1e11, seconds_of, &free_of_cost), 128.0 * 128 * 128));
  EXPECT(near(sg_blas_square_floor(1e11, unknown, NULL), 8192.0 * 8192 * 8192));
}

static void test_margin(void) {
  EXPECT(sg_blas_device_wins(0.89, 1e9, 1e9));
  EXPECT(!sg_blas_device_wins(0.91, 1e9, 1e9));
}

int main(void) {
  test_first_rate();
  test_threads();
  test_learning();
  test_slowdown();
  test_cheap_floor();
  test_square_floor();
  test_margin();
  printf("%d failures\n", failures);
  return failures != 0;
}
