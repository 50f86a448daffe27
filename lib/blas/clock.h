/* SPDX-License-Identifier: Apache-2.0 */
/* Time: in seconds, and in ticks of the processor, which cost a small call less to read. */
#ifndef STREAMGEMM_BLAS_CLOCK_H
#define STREAMGEMM_BLAS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline double sg_blas_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline uint64_t sg_blas_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return (uint64_t)(sg_blas_now() * 1e9);
#endif
}

/* Notes the time from which the length of a tick is measured: once, before the first ticks. */
void sg_blas_start_clock(void);
/* Seconds of a tick, as measured since. */
double sg_blas_tick(void);

#endif
