/* SPDX-License-Identifier: Apache-2.0 */
/* A call of LAPACK on the device: the copies to it, the computation, and the copies back. */
#ifndef STREAMGEMM_BLAS_SOLVE_H
#define STREAMGEMM_BLAS_SOLVE_H

#include "device.h"
#include "lapack.h"

/* Computes a valid call on the open device, which has cuSOLVER. SG_BLAS_ON_DEVICE: done. SG_BLAS_UNSOLVED or
   SG_BLAS_DEVICE_FAILED: nothing of the program's is changed. Ends the process, with a message, if the device fails
   while it writes results over operands. */
sg_blas_reason sg_blas_device_solve(const sg_blas_solver_call *solver, sg_blas_outcome *out);

#endif
