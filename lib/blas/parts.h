/* SPDX-License-Identifier: Apache-2.0 */
/* Routines of level 3 as GEMMs and smaller calls of their own: a triangle is halved, its square is a GEMM. All in
   column-major form. Standard block algorithms: no inverse is formed, and a triangle that the routine does not refer to
   is not touched. */
#ifndef STREAMGEMM_BLAS_PARTS_H
#define STREAMGEMM_BLAS_PARTS_H

#include "dispatcher.h"

/* One of the calls that a call is split into. The scalars of `call` may be its own: a part is not copied. */
typedef struct sg_blas_part {
  sg_blas_call call;
  double alpha[2], beta[2];
} sg_blas_part;

enum { SG_BLAS_PARTS_AT_MOST = 4 };

/* The call that computes the same in column-major form: of row-major matrices their transposes. The layout is valid;
   other arguments may not be. */
sg_blas_call sg_blas_in_columns(const sg_blas_call *call);
/* The parts of a valid call in column-major form, in the order in which they must be computed; 0: it cannot be split.
 */
int sg_blas_split(const sg_blas_call *call, sg_blas_part parts[SG_BLAS_PARTS_AT_MOST]);

#endif
