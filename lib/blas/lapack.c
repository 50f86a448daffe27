/* SPDX-License-Identifier: Apache-2.0 */
#include "lapack.h"

static int64_t integer(const sg_blas_entry *entry, const void *at) {
  return entry->is_wide ? *(const int64_t *)at : *(const int32_t *)at;
}

/* Multiplications and additions, in pairs. */
static double work_of(const sg_blas_call *call) {
  const double m = (double)call->m, n = (double)call->n, columns = (double)call->k;
  switch (call->entry->solver) {
    case SG_BLAS_GETRF: return m > n ? n * n * (m - n / 3) / 2 : m * m * (n - m / 3) / 2;
    case SG_BLAS_GETRS:
    case SG_BLAS_POTRS: return n * n * columns;
    case SG_BLAS_GESV: return n * n * n / 3 + n * n * columns;
    case SG_BLAS_POTRF: return n * n * n / 6;
    case SG_BLAS_POSV: return n * n * n / 6 + n * n * columns;
    case SG_BLAS_GEQRF:
    case SG_BLAS_ORGQR:
    case SG_BLAS_UNGQR: return m > n ? n * n * (m - n / 3) : m * m * (n - m / 3);
    default: return n * n * n * 4 / 3;
  }
}

void sg_blas_read_solver(sg_blas_entry *entry, void *const given[], sg_blas_solver_call *out) {
  *out = (sg_blas_solver_call){.call.entry = entry};
  for (int i = 0; entry->roles[i] != SG_BLAS_ROLES; ++i) {
    void *const at = given[i];
    switch (entry->roles[i]) {
      case SG_BLAS_ROLE_M: out->call.m = integer(entry, at); break;
      case SG_BLAS_ROLE_N: out->call.n = integer(entry, at); break;
      case SG_BLAS_ROLE_K:
      case SG_BLAS_ROLE_NRHS: out->call.k = integer(entry, at); break;
      case SG_BLAS_ROLE_A: out->call.a = at; break;
      case SG_BLAS_ROLE_B: out->call.b = at; break;
      case SG_BLAS_ROLE_LDA: out->call.lda = integer(entry, at); break;
      case SG_BLAS_ROLE_LDB: out->call.ldb = integer(entry, at); break;
      case SG_BLAS_ROLE_UPLO: out->call.uplo = sg_blas_upper(*(const char *)at); break;
      case SG_BLAS_ROLE_TRANS: out->call.transa = sg_blas_upper(*(const char *)at); break;
      case SG_BLAS_ROLE_JOBZ: out->jobz = sg_blas_upper(*(const char *)at); break;
      case SG_BLAS_ROLE_IPIV: out->ipiv = at; break;
      case SG_BLAS_ROLE_W: out->w = at; break;
      case SG_BLAS_ROLE_TAU: out->tau = at; break;
      case SG_BLAS_ROLE_INFO: out->info = at; break;
      case SG_BLAS_ROLE_LWORK: out->lwork = integer(entry, at); break;
      case SG_BLAS_ROLE_LRWORK: out->lrwork = integer(entry, at); break;
      case SG_BLAS_ROLE_LIWORK: out->liwork = integer(entry, at); break;
      default: break; /* workspaces */
    }
  }
  out->call.work = work_of(&out->call);
}

static int64_t most(int64_t one, int64_t other) { return one > other ? one : other; }
static int64_t least(int64_t one, int64_t other) { return one < other ? one : other; }

bool sg_blas_solver_has_b(const sg_blas_solver_call *solver) {
  switch (solver->call.entry->solver) {
    case SG_BLAS_GETRS:
    case SG_BLAS_GESV:
    case SG_BLAS_POTRS:
    case SG_BLAS_POSV: return true;
    default: return false;
  }
}

bool sg_blas_solver_is_cholesky(const sg_blas_solver_call *solver) {
  return solver->call.entry->solver == SG_BLAS_POTRF || solver->call.entry->solver == SG_BLAS_POTRS ||
         solver->call.entry->solver == SG_BLAS_POSV;
}

int64_t sg_blas_solver_rows(const sg_blas_solver_call *solver) {
  return solver->call.entry->solver == SG_BLAS_GETRF || solver->tau != NULL ? solver->call.m : solver->call.n;
}

int64_t sg_blas_solver_rank(const sg_blas_solver_call *solver) {
  return least(sg_blas_solver_rows(solver), solver->call.n);
}

bool sg_blas_solver_forms_q(const sg_blas_solver_call *solver) {
  return solver->call.entry->solver == SG_BLAS_ORGQR || solver->call.entry->solver == SG_BLAS_UNGQR;
}

/* The least workspaces, as LAPACK's own checks have them. */
static bool has_workspace(const sg_blas_solver_call *solver) {
  const int64_t n = solver->call.n;
  const bool has_vectors = solver->jobz == 'V';
  switch (solver->call.entry->solver) {
    case SG_BLAS_GEQRF:
    case SG_BLAS_ORGQR:
    case SG_BLAS_UNGQR: return solver->lwork >= n;
    case SG_BLAS_SYEV: return solver->lwork >= most(1, 3 * n - 1);
    case SG_BLAS_HEEV: return solver->lwork >= most(1, 2 * n - 1);
    case SG_BLAS_SYEVD:
      return solver->lwork >= (has_vectors ? 1 + 6 * n + 2 * n * n : 2 * n + 1) &&
             solver->liwork >= (has_vectors ? 3 + 5 * n : 1);
    case SG_BLAS_HEEVD:
      return solver->lwork >= (has_vectors ? 2 * n + n * n : n + 1) &&
             solver->lrwork >= (has_vectors ? 1 + 5 * n + 2 * n * n : n) &&
             solver->liwork >= (has_vectors ? 3 + 5 * n : 1);
    default: return true;
  }
}

bool sg_blas_is_valid_solver(const sg_blas_solver_call *solver) {
  const sg_blas_call *const call = &solver->call;
  const bool is_lu = solver->call.entry->solver == SG_BLAS_GETRF || solver->call.entry->solver == SG_BLAS_GESV;
  const int64_t rows = sg_blas_solver_rows(solver);
  if (call->lda > INT32_MAX || call->ldb > INT32_MAX || call->n > INT32_MAX || call->k > INT32_MAX) return false;
  if (call->n <= 0 || rows <= 0 || call->lda < rows) return false;
  if (sg_blas_solver_has_b(solver) && (call->k <= 0 || call->ldb < call->n)) return false;
  if (solver->tau != NULL)
    return has_workspace(solver) &&
           (!sg_blas_solver_forms_q(solver) || (call->k > 0 && call->n >= call->k && rows >= call->n));
  if (solver->call.entry->solver == SG_BLAS_GETRS) {
    if (call->transa != 'N' && call->transa != 'T' && call->transa != 'C') return false;
  } else if (!is_lu && call->uplo != 'U' && call->uplo != 'L') {
    return false;
  }
  const bool is_eigen = solver->w != NULL;
  return !is_eigen || ((solver->jobz == 'N' || solver->jobz == 'V') && has_workspace(solver));
}

int64_t sg_blas_solver_size(const sg_blas_solver_call *solver) {
  switch (solver->call.entry->solver) {
    case SG_BLAS_GETRS: /* the copy of A alone outweighs few columns */
    case SG_BLAS_POTRS: return least(solver->call.n, solver->call.k);
    default: return sg_blas_solver_rank(solver);
  }
}

int64_t sg_blas_least_solver_size(const sg_blas_solver_call *solver) { return solver->w != NULL ? 1024 : 2048; }
