/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of LAPACK's solvers: of linear equations, QR factorizations, and eigenvalues of symmetric matrices. Each is
   computed by the device whole, in device memory, or by the CPU library; nothing of the program's is written before the
   device has succeeded. */
#ifndef STREAMGEMM_BLAS_LAPACK_H
#define STREAMGEMM_BLAS_LAPACK_H

#include "dispatcher.h"

typedef struct sg_blas_solver_call {
  sg_blas_call call; /* transa: TRANS; k: the columns of B, or the reflectors; a and b may be written */
  char jobz;
  void *ipiv, *w, *tau, *info;
  int64_t lwork, lrwork, liwork;
  double started;
  bool is_counted, ends_unsolved;
} sg_blas_solver_call;

/* Computes a call, whose arguments are `given`, on the device; false: the caller passes it to the CPU library,
   untouched, and then calls the second function. */
bool sg_blas_solve(sg_blas_entry *entry, void *const given[], sg_blas_solver_call *solver);
void sg_blas_solved_by_cpu(sg_blas_solver_call *solver);

void sg_blas_read_solver(sg_blas_entry *entry, void *const given[], sg_blas_solver_call *out);
/* Whether all arguments are those that LAPACK computes by: no query of workspace, workspace that suffices, no empty
   matrix. Otherwise the CPU library answers. */
bool sg_blas_is_valid_solver(const sg_blas_solver_call *solver);
/* The size by which it is decided whether a call is worth the device, and the least one that is. */
int64_t sg_blas_solver_size(const sg_blas_solver_call *solver);
int64_t sg_blas_least_solver_size(const sg_blas_solver_call *solver);
/* Whether the routine has columns B, and whether it factorizes A by Cholesky. */
bool sg_blas_solver_has_b(const sg_blas_solver_call *solver);
bool sg_blas_solver_is_cholesky(const sg_blas_solver_call *solver);
/* Rows of A, and the lesser of its rows and columns. */
int64_t sg_blas_solver_rows(const sg_blas_solver_call *solver);
int64_t sg_blas_solver_rank(const sg_blas_solver_call *solver);
/* Whether the routine forms Q of reflectors. */
bool sg_blas_solver_forms_q(const sg_blas_solver_call *solver);

#endif
