/* SPDX-License-Identifier: Apache-2.0 */
/* The device's predicted times, remembered by form: all that a plan depends on but addresses. */
#ifndef STREAMGEMM_BLAS_PREDICTIONS_H
#define STREAMGEMM_BLAS_PREDICTIONS_H

#include "device.h"
#include "dispatcher.h"
#include "settings.h"

/* Whether the device, which is open, is expected to be faster than the CPU for a valid call that is one operation, with
   `checking` seconds for the copies that it keeps of A and B; notes in the call what is expected. In mode auto the call
   reads host memory instead, checking nothing, where that is predicted to be about as fast: a long product hides a
   transfer, but no check. Any thread. */
bool sg_blas_device_is_faster(sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places,
                              double checking);
void sg_blas_predictions_after_fork(void);

#endif
