/* SPDX-License-Identifier: Apache-2.0 */
#include "validity.h"

static bool is_op(char letter) { return letter == 'N' || letter == 'T' || letter == 'C'; }

/* Whether `ld` suits a matrix of `rows` x `cols` as stored. */
static bool is_leading(const sg_blas_call *call, int64_t ld, int64_t rows, int64_t cols) {
  const int64_t least = call->layout == SG_BLAS_ROW_MAJOR ? cols : rows;
  return ld >= (least > 1 ? least : 1);
}

/* Whether a scalar is the real number `value`. */
static bool equals(const void *scalar, char type, double value) {
  switch (type) {
    case 's': return *(const float *)scalar == value;
    case 'd': return *(const double *)scalar == value;
    case 'c': return ((const float *)scalar)[0] == value && ((const float *)scalar)[1] == 0;
    default: return ((const double *)scalar)[0] == value && ((const double *)scalar)[1] == 0;
  }
}

static sg_blas_reason check_gemm(const sg_blas_call *call) {
  if (call->layout == SG_BLAS_NO_LAYOUT || !is_op(call->transa) || !is_op(call->transb) || call->m < 0 || call->n < 0 ||
      call->k < 0)
    return SG_BLAS_INVALID;
  const bool keeps_a = call->transa == 'N', keeps_b = call->transb == 'N';
  if (!is_leading(call, call->lda, keeps_a ? call->m : call->k, keeps_a ? call->k : call->m) ||
      !is_leading(call, call->ldb, keeps_b ? call->k : call->n, keeps_b ? call->n : call->k) ||
      !is_leading(call, call->ldc, call->m, call->n))
    return SG_BLAS_INVALID;
  return call->m == 0 || call->n == 0 || call->k == 0 || equals(call->alpha, call->entry->type, 0) ? SG_BLAS_EMPTY
                                                                                                   : SG_BLAS_ON_DEVICE;
}

sg_blas_reason sg_blas_check(const sg_blas_call *call) {
  return call->entry->number == SG_BLAS_GEMM ? check_gemm(call) : SG_BLAS_NOT_SERVED;
}
