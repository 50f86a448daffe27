/* SPDX-License-Identifier: Apache-2.0 */
/* The device's predicted times, remembered by form: all that a plan depends on but addresses. */
#ifndef STREAMGEMM_BLAS_PREDICTIONS_H
#define STREAMGEMM_BLAS_PREDICTIONS_H

#include "device.h"
#include "dispatcher.h"
#include "settings.h"

/* Seconds that the device takes for a valid call that is one operation, by its plan; 0: unknown, or not planned yet. A
   form is planned once the CPU, which takes `cpu_seconds` for the call, would have taken as long for its calls as a
   plan takes. The device is open. Any thread. */
double sg_blas_predicted(const sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places,
                         double cpu_seconds);
/* Whether the device is expected to be faster than the CPU, with `checking` seconds for the copies that it keeps of A
   and B; notes in the call what is expected. In mode auto the call reads host memory instead, checking nothing, where
   that is predicted to be about as fast: a long product hides a transfer, but no check. */
bool sg_blas_device_is_faster(sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places,
                              double checking);
void sg_blas_predictions_after_fork(void);

#endif
