/* SPDX-License-Identifier: Apache-2.0 */
#include "validity.h"

#include "batch.h"
#include "parts.h"

static bool is_op(char letter) { return letter == 'N' || letter == 'T' || letter == 'C'; }
static bool is_complex(char type) { return type == 'c' || type == 'z'; }
static bool is_leading(int64_t ld, int64_t rows) { return ld >= (rows > 1 ? rows : 1); }

/* Whether a scalar is 0; `is_real`: it has no imaginary part. */
static bool is_zero(const void *scalar, char type, bool is_real) {
  if (type == 's' || type == 'c')
    return ((const float *)scalar)[0] == 0 && (is_real || ((const float *)scalar)[1] == 0);
  return ((const double *)scalar)[0] == 0 && (is_real || ((const double *)scalar)[1] == 0);
}

/* Of column-major calls, whose letters, sizes and leading dimensions are to be checked. */
static bool is_valid_gemm(const sg_blas_call *call) {
  return is_op(call->transa) && is_op(call->transb) && is_leading(call->lda, call->transa == 'N' ? call->m : call->k) &&
         is_leading(call->ldb, call->transb == 'N' ? call->k : call->n) && is_leading(call->ldc, call->m);
}

static bool is_valid_gemmt(const sg_blas_call *call) {
  return is_op(call->transa) && is_op(call->transb) && is_leading(call->lda, call->transa == 'N' ? call->n : call->k) &&
         is_leading(call->ldb, call->transb == 'N' ? call->k : call->n) && is_leading(call->ldc, call->n);
}

static bool is_valid_update(const sg_blas_call *call) {
  const sg_blas_routine routine = call->entry->number;
  const bool is_hermitian = routine == SG_BLAS_HERK || routine == SG_BLAS_HER2K;
  const bool has_two = routine == SG_BLAS_SYR2K || routine == SG_BLAS_HER2K;
  const bool fits = call->transa == 'N' || (call->transa == 'T' && !is_hermitian) ||
                    (call->transa == 'C' && (is_hermitian || !is_complex(call->entry->type)));
  const int64_t rows = call->transa == 'N' ? call->n : call->k;
  return fits && is_leading(call->lda, rows) && (!has_two || is_leading(call->ldb, rows)) &&
         is_leading(call->ldc, call->n);
}

static bool is_valid_sided(const sg_blas_call *call) {
  const sg_blas_routine routine = call->entry->number;
  const bool is_triangular = routine == SG_BLAS_TRMM || routine == SG_BLAS_TRSM;
  return (call->side == 'L' || call->side == 'R') &&
         (!is_triangular || (is_op(call->transa) && (call->diag == 'N' || call->diag == 'U'))) &&
         is_leading(call->lda, call->side == 'L' ? call->m : call->n) && is_leading(call->ldb, call->m) &&
         (is_triangular || is_leading(call->ldc, call->m));
}

sg_blas_reason sg_blas_check(const sg_blas_call *given) {
  if (given->layout == SG_BLAS_NO_LAYOUT) return SG_BLAS_INVALID;
  if (given->batch != NULL) return sg_blas_check_batch(given);
  sg_blas_call columns;
  const sg_blas_call *call = given;
  if (given->layout == SG_BLAS_ROW_MAJOR) columns = sg_blas_in_columns(given), call = &columns;
  const sg_blas_routine routine = call->entry->number;
  if (call->m < 0 || call->n < 0 || call->k < 0 || (routine != SG_BLAS_GEMM && call->uplo != 'U' && call->uplo != 'L'))
    return SG_BLAS_INVALID;
  bool is_valid = false, has_m = true, has_k = false;
  switch (routine) {
    case SG_BLAS_GEMM: is_valid = is_valid_gemm(call), has_k = true; break;
    case SG_BLAS_GEMMT:
    case SG_BLAS_GEMMTR: is_valid = is_valid_gemmt(call), has_m = false, has_k = true; break;
    case SG_BLAS_SYRK:
    case SG_BLAS_HERK:
    case SG_BLAS_SYR2K:
    case SG_BLAS_HER2K: is_valid = is_valid_update(call), has_m = false, has_k = true; break;
    case SG_BLAS_SYMM:
    case SG_BLAS_HEMM:
    case SG_BLAS_TRMM:
    case SG_BLAS_TRSM: is_valid = is_valid_sided(call); break;
    case SG_BLAS_GEMM_BATCH:
    case SG_BLAS_GEMM_BATCH_STRIDED: break; /* of their GEMMs */
  }
  if (!is_valid) return SG_BLAS_INVALID;
  const bool is_real = !is_complex(call->entry->type) || routine == SG_BLAS_HERK;
  const bool is_empty = call->n == 0 || (has_m && call->m == 0) || (has_k && call->k == 0) ||
                        is_zero(call->alpha, call->entry->type, is_real);
  if (is_empty) return SG_BLAS_EMPTY;
  const bool is_vast = call->m > INT32_MAX || call->n > INT32_MAX || call->k > INT32_MAX || call->lda > INT32_MAX ||
                       call->ldb > INT32_MAX || call->ldc > INT32_MAX;
  return is_vast ? SG_BLAS_VAST : SG_BLAS_ON_DEVICE;
}
