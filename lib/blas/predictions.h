/* SPDX-License-Identifier: Apache-2.0 */
/* The device's predicted times, remembered by shape. */
#ifndef STREAMGEMM_BLAS_PREDICTIONS_H
#define STREAMGEMM_BLAS_PREDICTIONS_H

#include "dispatcher.h"
#include "settings.h"

/* Seconds that the device takes for a GEMM with valid arguments, by its model; 0: unknown. The device is open. Any
 * thread. */
double sg_blas_predicted(const sg_blas_call *call, const sg_blas_settings *settings);
void sg_blas_predictions_after_fork(void);

#endif
