/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a call's arguments are exactly those that BLAS allows. All others go to the CPU BLAS untouched, which reports
 * them. */
#ifndef STREAMGEMM_BLAS_VALIDITY_H
#define STREAMGEMM_BLAS_VALIDITY_H

#include "dispatcher.h"

/* SG_BLAS_INVALID, SG_BLAS_EMPTY or, if there is something to multiply, SG_BLAS_ON_DEVICE. */
sg_blas_reason sg_blas_check(const sg_blas_call *call);

#endif
