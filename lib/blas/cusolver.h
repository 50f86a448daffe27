/* SPDX-License-Identifier: Apache-2.0 */
/* cuSOLVER, opened by name at the first call of LAPACK that is worth the device. */
#ifndef STREAMGEMM_BLAS_CUSOLVER_H
#define STREAMGEMM_BLAS_CUSOLVER_H

#include <streamgemm/streamgemm.h>

#include "lapack.h"

/* Whether cuSOLVER can be used; any thread. */
bool sg_blas_has_cusolver(void);

/* One call, with its operands in device memory: column-major, their leading dimensions in elements. */
typedef struct sg_blas_cusolver_job {
  const sg_blas_solver_call *of;
  size_t a, b, ipiv, w, tau, info; /* offsets in the buffer of operands */
  int64_t lda, ldb;
  size_t device_bytes, host_bytes; /* workspace */
  void *host_workspace;
} sg_blas_cusolver_job;

/* Functions of custom operations whose `user` is an sg_blas_cusolver_job. The first, with `info` as its operand, finds
   the sizes of the workspaces; the second, with the buffer of operands and the workspace, enqueues the computation. */
sg_status sg_blas_cusolver_prepare(const sg_custom_call *given, void *user);
sg_status sg_blas_cusolver_solve(const sg_custom_call *given, void *user);

#endif
