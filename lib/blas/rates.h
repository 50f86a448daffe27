/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the CPU or the device is faster: the rate of the CPU BLAS as measured, and the least work that is worth a
   device. Work is in multiplications and additions, in pairs, of the routine's type. */
#ifndef STREAMGEMM_BLAS_RATES_H
#define STREAMGEMM_BLAS_RATES_H

#include <stdbool.h>
#include <stddef.h>

/* Rate, in work a second, that a CPU BLAS is taken to have before it has been measured: 0.6 of what `threads` cores
   with two units for vectors of `vector_bytes` can do at 2.5 GHz. */
double sg_blas_first_rate(char type, int threads, int vector_bytes);
/* Threads that a CPU BLAS uses here, by its variables and the cores of the process; bytes of the processor's vectors.
 */
int sg_blas_cpu_threads(void);
int sg_blas_vector_bytes(void);

/* The measured rate of a type's level 3, atomic: an exponential average over calls that took at least 1 ms. Thin calls,
   which memory bounds, are told apart from others, and from each other, by the least of their sizes. */
double sg_blas_rate_of(char type, double least_size);
void sg_blas_learn(char type, double least_size, double work, double seconds);

/* Measured times of the device over those that its model predicts, 1 to 4, an average from the third call on: one for
   calls with an operand in pageable memory, which the host's threads copy while the CPU BLAS's may still spin, and one
   for others. Atomic. */
double sg_blas_slowdown(bool is_pageable);
void sg_blas_learn_device(bool is_pageable, double predicted, double seconds);

/* The least work for which some device could win: 30 us for launches, and three square matrices of `type` in and one
   out at 60 GB/s. At least 128^3. Needs no device. */
double sg_blas_cheap_floor(char type, double rate);
/* The model wins by a margin of a tenth. */
bool sg_blas_device_wins(double device_seconds, double work, double rate);
/* n^3 of the least square n, from 128 to 8192, from which the device wins; `predict` gives its seconds for n, 0:
 * unknown. */
double sg_blas_square_floor(double rate, double (*predict)(int n, void *of), void *of);

#endif
