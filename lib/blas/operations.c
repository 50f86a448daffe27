/* SPDX-License-Identifier: Apache-2.0 */
#include "operations.h"

#include "library.h"

static const sg_dtype types[256] = {
    ['s'] = SG_DTYPE_F32, ['d'] = SG_DTYPE_F64, ['c'] = SG_DTYPE_C64, ['z'] = SG_DTYPE_C128};

sg_dtype sg_blas_type_of(char type) { return types[(unsigned char)type]; }
size_t sg_blas_size_of(sg_dtype type) { return type == SG_DTYPE_F32 ? 4 : type == SG_DTYPE_C128 ? 16 : 8; }

static sg_scalar scalar_of(const void *value, char type) {
  sg_scalar scalar = {0, 0};
  switch (type) {
    case 's': scalar.re = *(const float *)value; break;
    case 'd': scalar.re = *(const double *)value; break;
    case 'c': scalar.re = ((const float *)value)[0], scalar.im = ((const float *)value)[1]; break;
    case 'z': scalar.re = ((const double *)value)[0], scalar.im = ((const double *)value)[1]; break;
  }
  return scalar;
}
/* A scalar that is real, whatever the type. */
static sg_scalar real_scalar_of(const void *value, char type) {
  return scalar_of(value, type == 'c' || type == 's' ? 's' : 'd');
}

static sg_transpose op_of(char letter) {
  return letter == 'N' ? SG_TRANSPOSE_N : letter == 'T' ? SG_TRANSPOSE_T : SG_TRANSPOSE_C;
}
static sg_side side_of(const sg_blas_call *call) { return call->side == 'L' ? SG_SIDE_LEFT : SG_SIDE_RIGHT; }
static sg_triangle triangle_of(const sg_blas_call *call) {
  return call->uplo == 'L' ? SG_TRIANGLE_LOWER : SG_TRIANGLE_UPPER;
}

static sg_matrix matrix_of(const sg_blas_call *call, const void *data, int64_t rows, int64_t cols, int64_t ld) {
  const sg_layout layout = call->layout == SG_BLAS_ROW_MAJOR ? SG_LAYOUT_ROW_MAJOR : SG_LAYOUT_COLUMN_MAJOR;
  return (sg_matrix){(void *)data, rows, cols, ld, sg_blas_type_of(call->entry->type), layout};
}

static void describe_gemm(const sg_blas_call *call, const sg_blas_settings *settings, sg_gemm_desc *desc) {
  const char type = call->entry->type;
  const bool keeps_a = call->transa == 'N', keeps_b = call->transb == 'N';
  *desc = (sg_gemm_desc)SG_GEMM_DESC_INIT;
  desc->a = matrix_of(call, call->a, keeps_a ? call->m : call->k, keeps_a ? call->k : call->m, call->lda);
  desc->b = matrix_of(call, call->b, keeps_b ? call->k : call->n, keeps_b ? call->n : call->k, call->ldb);
  desc->c = matrix_of(call, call->c, call->m, call->n, call->ldc);
  desc->op_a = op_of(call->transa);
  desc->op_b = op_of(call->transb);
  desc->compute = type == 's' ? (sg_compute)settings->compute : SG_COMPUTE_EXACT;
  desc->alpha = scalar_of(call->alpha, type);
  desc->beta = scalar_of(call->beta, type);
}

static void describe_triangular(const sg_blas_call *call, sg_triangular_desc *desc) {
  const int64_t order = call->side == 'L' ? call->m : call->n;
  *desc = (sg_triangular_desc)SG_TRIANGULAR_DESC_INIT;
  desc->kind = call->entry->number == SG_BLAS_TRSM ? SG_TRIANGULAR_SOLVE : SG_TRIANGULAR_MULTIPLY;
  desc->a = matrix_of(call, call->a, order, order, call->lda);
  desc->b = matrix_of(call, call->b, call->m, call->n, call->ldb);
  desc->side = side_of(call);
  desc->triangle = triangle_of(call);
  desc->op_a = op_of(call->transa);
  desc->diagonal = call->diag == 'U' ? SG_DIAGONAL_UNIT : SG_DIAGONAL_STORED;
  desc->alpha = scalar_of(call->alpha, call->entry->type);
}

static void describe_symmetric(const sg_blas_call *call, sg_symmetric_desc *desc) {
  const int64_t order = call->side == 'L' ? call->m : call->n;
  *desc = (sg_symmetric_desc)SG_SYMMETRIC_DESC_INIT;
  desc->a = matrix_of(call, call->a, order, order, call->lda);
  desc->b = matrix_of(call, call->b, call->m, call->n, call->ldb);
  desc->c = matrix_of(call, call->c, call->m, call->n, call->ldc);
  desc->side = side_of(call);
  desc->triangle = triangle_of(call);
  desc->symmetry = call->entry->number == SG_BLAS_HEMM ? SG_SYMMETRY_HERMITIAN : SG_SYMMETRY_SYMMETRIC;
  desc->alpha = scalar_of(call->alpha, call->entry->type);
  desc->beta = scalar_of(call->beta, call->entry->type);
}

static void describe_update(const sg_blas_call *call, sg_rank_k_desc *desc) {
  const sg_blas_routine routine = call->entry->number;
  const char type = call->entry->type;
  const bool is_hermitian = routine == SG_BLAS_HERK || routine == SG_BLAS_HER2K;
  const int64_t rows = call->transa == 'N' ? call->n : call->k, cols = call->transa == 'N' ? call->k : call->n;
  *desc = (sg_rank_k_desc)SG_RANK_K_DESC_INIT;
  desc->a = matrix_of(call, call->a, rows, cols, call->lda);
  if (routine == SG_BLAS_SYR2K || routine == SG_BLAS_HER2K) desc->b = matrix_of(call, call->b, rows, cols, call->ldb);
  desc->c = matrix_of(call, call->c, call->n, call->n, call->ldc);
  desc->triangle = triangle_of(call);
  desc->symmetry = is_hermitian ? SG_SYMMETRY_HERMITIAN : SG_SYMMETRY_SYMMETRIC;
  desc->op_a = op_of(call->transa);
  desc->alpha = routine == SG_BLAS_HERK ? real_scalar_of(call->alpha, type) : scalar_of(call->alpha, type);
  desc->beta = is_hermitian ? real_scalar_of(call->beta, type) : scalar_of(call->beta, type);
}

bool sg_blas_is_operation(const sg_blas_call *call, const sg_blas_settings *settings) {
  const sg_blas_routine routine = call->entry->number;
  if (routine == SG_BLAS_GEMM) return true;
  if (routine == SG_BLAS_GEMMT || routine == SG_BLAS_GEMMTR) return false;
  return call->entry->type != 's' || settings->compute == SG_COMPUTE_EXACT;
}

static bool is_not_zero(sg_scalar x) { return x.re != 0 || x.im != 0; }

void sg_blas_describe(const sg_blas_call *call, const sg_blas_settings *settings, sg_blas_operation *out) {
  out->part_of_a = 0;
  switch (call->entry->number) {
    case SG_BLAS_TRMM:
    case SG_BLAS_TRSM:
      out->which = SG_OPERATION_TRIANGULAR;
      describe_triangular(call, &out->desc.triangular);
      out->part_of_a = (unsigned)call->uplo << 8 | (unsigned)call->diag;
      out->a = &out->desc.triangular.a, out->b = NULL, out->c = &out->desc.triangular.b;
      out->reads_c = is_not_zero(out->desc.triangular.alpha);
      return;
    case SG_BLAS_SYMM:
    case SG_BLAS_HEMM:
      out->which = SG_OPERATION_SYMMETRIC;
      describe_symmetric(call, &out->desc.symmetric);
      out->part_of_a = (unsigned)call->uplo << 8 | (call->entry->number == SG_BLAS_HEMM ? 'H' : 'N');
      out->a = &out->desc.symmetric.a, out->b = &out->desc.symmetric.b, out->c = &out->desc.symmetric.c;
      out->reads_c = is_not_zero(out->desc.symmetric.beta);
      return;
    case SG_BLAS_SYRK:
    case SG_BLAS_HERK:
    case SG_BLAS_SYR2K:
    case SG_BLAS_HER2K:
      out->which = SG_OPERATION_RANK_K;
      describe_update(call, &out->desc.rank_k);
      out->a = &out->desc.rank_k.a, out->b = out->desc.rank_k.b.data == NULL ? NULL : &out->desc.rank_k.b;
      out->c = &out->desc.rank_k.c;
      out->reads_c = is_not_zero(out->desc.rank_k.beta);
      return;
    default:
      out->which = SG_OPERATION_GEMM;
      describe_gemm(call, settings, &out->desc.gemm);
      out->a = &out->desc.gemm.a, out->b = &out->desc.gemm.b, out->c = &out->desc.gemm.c;
      out->reads_c = is_not_zero(out->desc.gemm.beta);
      return;
  }
}

sg_status sg_blas_submit(const sg_blas_operation *operation, sg_context *on, const sg_submit *submit,
                         sg_job **out_job) {
  switch (operation->which) {
    case SG_OPERATION_TRIANGULAR:
      return sg_blas_streamgemm.sg_triangular_async(on, &operation->desc.triangular, submit, out_job);
    case SG_OPERATION_SYMMETRIC:
      return sg_blas_streamgemm.sg_symmetric_async(on, &operation->desc.symmetric, submit, out_job);
    case SG_OPERATION_RANK_K: return sg_blas_streamgemm.sg_rank_k_async(on, &operation->desc.rank_k, submit, out_job);
    default: return sg_blas_streamgemm.sg_gemm_async(on, &operation->desc.gemm, submit, out_job);
  }
}
