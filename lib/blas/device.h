/* SPDX-License-Identifier: Apache-2.0 */
/* The device, through libstreamgemm, which is loaded at the first call that may go there. */
#ifndef STREAMGEMM_BLAS_DEVICE_H
#define STREAMGEMM_BLAS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <streamgemm/streamgemm.h>

#include "dispatcher.h"
#include "settings.h"

/* What the device did in one call, added to what it did before. */
typedef struct sg_blas_outcome {
  uint64_t bytes_in, bytes_out;
  double job_seconds; /* of its latest job, from the first command to the last; 0: beside another call's */
} sg_blas_outcome;

/* Whether a device may be there: false without loading anything if SG_DEVICE names none and the system has no GPU. */
bool sg_blas_may_have_device(const sg_blas_settings *settings);
/* Opens the device at the first call; false: there is none. Any thread. */
bool sg_blas_open_device(const sg_blas_settings *settings);
/* Whether the device or its library has been opened, or is being opened: a child made by fork must not touch it. */
bool sg_blas_device_was_touched(void);
/* Computes a call that is one operation (operations.h), with valid arguments; false: C is as before, and the CPU is to
   compute it. Ends the process, with a message, if the device failed after it had written a part of a C that it also
   reads. */
bool sg_blas_device_compute(const sg_blas_call *call, const sg_blas_settings *settings, sg_blas_outcome *out);
/* Where the operands of a call are. */
typedef struct sg_blas_places {
  char kinds[3];           /* sg_memory_kind of A, B and C; 0 where the device computes in host memory itself */
  bool has_device_operand; /* a device's memory, the program's own, which the CPU cannot read */
  bool is_resident[2];     /* the device has a copy of A or B, whose kind then is device memory */
} sg_blas_places;
/* Returns the seconds that it takes to check the copies. */
double sg_blas_places_of(const sg_blas_call *call, const sg_blas_settings *settings, sg_blas_places *places);
/* Seconds that the device's model predicts for the plan of a call with its operands at these places; 0: unknown. */
double sg_blas_predict(const sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places);
/* Whether the call reads what it replaces: beta, of a triangular routine alpha, is not 0. */
bool sg_blas_reads_c(const sg_blas_call *call, const sg_blas_settings *settings);
/* Predicted seconds of a square GEMM of n x n in pageable memory; 0: unknown. */
double sg_blas_predict_square(char type, int n);
/* Whether failures have closed the device, or there is none. */
bool sg_blas_device_is_closed(void);
void sg_blas_device_after_fork(void);
/* The device failed in a call. The first failures are reported, the last of them closes the device. */
void sg_blas_count_failure(const char *routine, const char *message);
/* The open device's; libstreamgemm's functions are in library.h. */
sg_context *sg_blas_context(void);
/* Whether the device is one of CUDA's. */
bool sg_blas_device_is_cuda(void);
/* The device's name, "" before it is open. */
const char *sg_blas_device_name(void);
uint64_t sg_blas_memory_limit(void); /* 0: none */

#endif
