/* SPDX-License-Identifier: Apache-2.0 */
#include "rates.h"

#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_complex(char type) { return type == 'c' || type == 'z'; }
static int real_bytes(char type) { return type == 's' || type == 'c' ? 4 : 8; }

double sg_blas_first_rate(char type, int threads, int vector_bytes) {
  const double pairs = 2.0 * vector_bytes / real_bytes(type) / (is_complex(type) ? 4 : 1);
  return 0.6 * 2.5e9 * threads * pairs;
}

int sg_blas_cpu_threads(void) {
  cpu_set_t cores;
  int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  static const char *const names[] = {"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    const char *const value = secure_getenv(names[i]);
    const int wanted = value == NULL ? 0 : atoi(value);
    if (wanted > 0) return wanted < count ? wanted : count;
  }
  return count < 1 ? 1 : count;
}

int sg_blas_vector_bytes(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
#else
  return 16;
#endif
}

enum { LATEST = 4 };
/* An average that weighs the latest four measurements most. Atomic, for a reader; of two writers one may be lost. */
typedef struct average {
  double value; /* 0: not yet asked for */
  int count;
} average;

static double value_of(average *of) {
  double value;
  __atomic_load(&of->value, &value, __ATOMIC_RELAXED);
  return value;
}

static void set(average *of, double value) { __atomic_store(&of->value, &value, __ATOMIC_RELAXED); }

static void add(average *to, double measured) {
  const int count = __atomic_load_n(&to->count, __ATOMIC_RELAXED);
  const double weight = 1.0 / (count + 2); /* what was assumed weighs as one measurement */
  if (count < LATEST - 2) __atomic_store_n(&to->count, count + 1, __ATOMIC_RELAXED);
  set(to, (1 - weight) * value_of(to) + weight * measured);
}

enum { CLASSES = 5, THICK = 256 };
static average rates[4][CLASSES]; /* least sizes below 32, 64, 128, 256, and others */

static average *rate_for(char type, double least_size) {
  int class = 0;
  for (double size = THICK; class < CLASSES - 1 && least_size < size; size /= 2) ++class;
  return &rates[strchr("sdcz", type) - "sdcz"][class];
}

double sg_blas_rate_of(char type, double least_size) {
  average *const rate = rate_for(type, least_size);
  if (value_of(rate) == 0) set(rate, sg_blas_first_rate(type, sg_blas_cpu_threads(), sg_blas_vector_bytes()));
  return value_of(rate);
}

void sg_blas_learn(char type, double least_size, double work, double seconds) {
  if (!(seconds >= 1e-3)) return;
  sg_blas_rate_of(type, least_size);
  add(rate_for(type, least_size), work / seconds);
}

/* The first calls also allocate, and start the host's threads. */
enum { FIRST_CALLS = 2 };
static average slowdowns[2] = {{1, -FIRST_CALLS}, {1, -FIRST_CALLS}};

double sg_blas_slowdown(bool is_pageable) { return value_of(&slowdowns[is_pageable]); }

void sg_blas_learn_device(bool is_pageable, double predicted, double seconds) {
  if (!(predicted >= 1e-4 && seconds > 0)) return;
  average *const of = &slowdowns[is_pageable];
  if (__atomic_load_n(&of->count, __ATOMIC_RELAXED) < 0)
    __atomic_add_fetch(&of->count, 1, __ATOMIC_RELAXED);
  else
    add(of, fmin(fmax(seconds / predicted, 1), 4));
}

bool sg_blas_device_wins(double device_seconds, double work, double rate) { return device_seconds < 0.9 * work / rate; }

double sg_blas_cheap_floor(char type, double rate) {
  const double bytes = real_bytes(type) * (is_complex(type) ? 2 : 1);
  double n = 128;
  while (n < 8192 && !sg_blas_device_wins(30e-6 + 4 * n * n * bytes / 60e9, n * n * n, rate)) n += 16;
  return n * n * n;
}

double sg_blas_square_floor(double rate, double (*predict)(int n, void *of), void *of) {
  int low = 64, high = 8192; /* the device does not win at `low`, and, as far as is known, at `high` it does */
  while (high - low > 16) {
    const int n = (low + high) / 2;
    const double seconds = predict(n, of);
    if (seconds > 0 && sg_blas_device_wins(seconds, (double)n * n * n, rate))
      high = n;
    else
      low = n;
  }
  const double n = high < 128 ? 128 : high;
  return n * n * n;
}
