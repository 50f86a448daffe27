/* SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"

#include <string.h>

static bool is_double(char type) { return type == 'd' || type == 'z'; }
static bool is_complex(char type) { return type == 'c' || type == 'z'; }

static char flip(char letter, char one, char other) { return letter == one ? other : letter == other ? one : letter; }

static void swap_sizes(sg_blas_call *call) {
  const int64_t m = call->m;
  call->m = call->n;
  call->n = m;
}

static void swap_operands(sg_blas_call *call) {
  const void *const a = call->a;
  const int64_t lda = call->lda;
  const char transa = call->transa;
  call->a = call->b, call->lda = call->ldb, call->transa = call->transb;
  call->b = a, call->ldb = lda, call->transb = transa;
}

sg_blas_call sg_blas_in_columns(const sg_blas_call *call) {
  sg_blas_call out = *call;
  if (call->layout != SG_BLAS_ROW_MAJOR) return out;
  out.layout = SG_BLAS_COLUMN_MAJOR;
  out.uplo = flip(call->uplo, 'U', 'L');
  switch (call->entry->number) {
    case SG_BLAS_GEMM: swap_operands(&out), swap_sizes(&out); break;
    case SG_BLAS_GEMM_BATCH:
    case SG_BLAS_GEMM_BATCH_STRIDED: break; /* their GEMMs are described in either layout */
    case SG_BLAS_GEMMT:
    case SG_BLAS_GEMMTR: swap_operands(&out); break;
    case SG_BLAS_SYRK:
    case SG_BLAS_SYR2K:
      if (call->transa == 'C' && !is_complex(call->entry->type))
        out.transa = 'N';
      else
        out.transa = flip(call->transa, 'N', 'T');
      break;
    case SG_BLAS_HERK: out.transa = flip(call->transa, 'N', 'C'); break;
    case SG_BLAS_HER2K: /* A and B in each other's place are alpha and its conjugate in each other's */
      swap_operands(&out);
      out.transa = flip(call->transa, 'N', 'C'), out.transb = 0;
      break;
    case SG_BLAS_SYMM:
    case SG_BLAS_HEMM:
    case SG_BLAS_TRMM:
    case SG_BLAS_TRSM: out.side = flip(call->side, 'L', 'R'), swap_sizes(&out); break;
  }
  return out;
}

/* The first part of a size: a multiple of 64 where that is little of it. */
static int64_t first_half(int64_t size) { return size < 256 ? size / 2 : (size / 2 + 63) / 64 * 64; }

static const void *at(const sg_blas_call *call, const void *matrix, int64_t ld, int64_t row, int64_t column) {
  const int64_t bytes = (is_double(call->entry->type) ? 8 : 4) * (is_complex(call->entry->type) ? 2 : 1);
  return (const char *)matrix + (row + column * ld) * bytes;
}

static const void *at_a(const sg_blas_call *call, int64_t row, int64_t column) {
  return at(call, call->a, call->lda, row, column);
}
static const void *at_b(const sg_blas_call *call, int64_t row, int64_t column) {
  return at(call, call->b, call->ldb, row, column);
}
static void *at_c(const sg_blas_call *call, int64_t row, int64_t column) {
  return (void *)at(call, call->c, call->ldc, row, column);
}

/* Of op(X), where op is N or not, the part that begins at row `row`. */
static const void *row_of_op(const sg_blas_call *call, const void *matrix, int64_t ld, char op, int64_t row) {
  return op == 'N' ? at(call, matrix, ld, row, 0) : at(call, matrix, ld, 0, row);
}
static const void *column_of_op(const sg_blas_call *call, const void *matrix, int64_t ld, char op, int64_t column) {
  return op == 'N' ? at(call, matrix, ld, 0, column) : at(call, matrix, ld, column, 0);
}

/* A scalar of the part's own: `real` and `imaginary` in the components of the call's type. */
static const void *own(double storage[2], char type, double real, double imaginary) {
  if (is_double(type)) {
    storage[0] = real, storage[1] = imaginary;
  } else {
    const float values[2] = {(float)real, (float)imaginary};
    memcpy(storage, values, sizeof values);
  }
  return storage;
}

static double component(const void *scalar, char type, int index) {
  return is_double(type) ? ((const double *)scalar)[index] : (double)((const float *)scalar)[index];
}

/* C (m x n, in place of `c`) = alpha op(A) op(B) + beta C, with the call's scalars until others are set. */
static sg_blas_call *gemm(sg_blas_part *part, const sg_blas_call *call, int64_t m, int64_t n, int64_t k, char transa,
                          const void *a, int64_t lda, char transb, const void *b, int64_t ldb, void *c, int64_t ldc) {
  part->call = (sg_blas_call){.entry = call->entry->gemm,
                              .work = (double)m * (double)n * (double)k,
                              .layout = SG_BLAS_COLUMN_MAJOR,
                              .transa = transa,
                              .transb = transb,
                              .m = m,
                              .n = n,
                              .k = k,
                              .alpha = call->alpha,
                              .beta = call->beta,
                              .a = a,
                              .lda = lda,
                              .b = b,
                              .ldb = ldb,
                              .c = c,
                              .ldc = ldc};
  return &part->call;
}

static void set_one(sg_blas_part *part, bool is_beta) {
  const char type = part->call.entry->type;
  if (is_beta)
    part->call.beta = own(part->beta, type, 1, 0);
  else
    part->call.alpha = own(part->alpha, type, 1, 0);
}

/* syrk, herk, syr2k, her2k, gemmt: the halves of a triangle of C, and its square. */
static int split_result(const sg_blas_call *call, sg_blas_part parts[]) {
  const sg_blas_routine routine = call->entry->number;
  const char type = call->entry->type;
  const bool is_product = routine == SG_BLAS_GEMMT || routine == SG_BLAS_GEMMTR;
  const bool has_two = routine == SG_BLAS_SYR2K || routine == SG_BLAS_HER2K;
  const bool is_hermitian = routine == SG_BLAS_HERK || routine == SG_BLAS_HER2K;
  const int64_t n1 = first_half(call->n), n2 = call->n - n1;
  const char op = call->transa, other = is_product ? call->transb : op != 'N' ? 'N' : is_hermitian ? 'C' : 'T';
  const bool is_lower = call->uplo == 'L';
  const int64_t row = is_lower ? n1 : 0, column = is_lower ? 0 : n1, m = is_lower ? n2 : n1, n = is_lower ? n1 : n2;
  /* The right factor, op' of this matrix: B of gemmt and of the first product of syr2k, else A. */
  const void *const right = is_product || has_two ? call->b : call->a;
  const int64_t right_ld = is_product || has_two ? call->ldb : call->lda;
  int count = 0;
  for (int half = 0; half < 2; ++half) {
    sg_blas_call *const part = &parts[count++].call;
    const int64_t start = half == 0 ? 0 : n1;
    *part = *call;
    part->n = half == 0 ? n1 : n2;
    part->a = row_of_op(call, call->a, call->lda, op, start);
    if (has_two) part->b = row_of_op(call, call->b, call->ldb, op, start);
    if (is_product) part->b = column_of_op(call, call->b, call->ldb, other, start);
    part->c = at_c(call, start, start);
  }
  sg_blas_part *const square = &parts[count++];
  gemm(square, call, m, n, call->k, op, row_of_op(call, call->a, call->lda, op, row), call->lda, other,
       column_of_op(call, right, right_ld, other, column), right_ld, at_c(call, row, column), call->ldc);
  if (routine == SG_BLAS_HERK) square->call.alpha = own(square->alpha, type, component(call->alpha, type, 0), 0);
  if (is_hermitian) square->call.beta = own(square->beta, type, component(call->beta, type, 0), 0);
  if (!has_two) return count;
  sg_blas_part *const second = &parts[count++];
  gemm(second, call, m, n, call->k, op, row_of_op(call, call->b, call->ldb, op, row), call->ldb, other,
       column_of_op(call, call->a, call->lda, other, column), call->lda, at_c(call, row, column), call->ldc);
  set_one(second, true);
  if (is_hermitian)
    second->call.alpha = own(second->alpha, type, component(call->alpha, type, 0), -component(call->alpha, type, 1));
  return count;
}

/* symm, hemm: the halves of A's triangle, and its square, which is used twice. */
static int split_symmetric(const sg_blas_call *call, sg_blas_part parts[]) {
  const bool is_left = call->side == 'L', is_lower = call->uplo == 'L';
  const int64_t size = is_left ? call->m : call->n, n1 = first_half(size), n2 = size - n1;
  const void *const square = is_lower ? at_a(call, n1, 0) : at_a(call, 0, n1);
  const char mirrored = call->entry->number == SG_BLAS_HEMM ? 'C' : 'T';
  for (int half = 0; half < 2; ++half) {
    const int64_t start = half == 0 ? 0 : n1, length = half == 0 ? n1 : n2, other_start = n1 - start,
                  other_length = size - length;
    sg_blas_call *const own_part = &parts[half].call;
    *own_part = *call;
    *(is_left ? &own_part->m : &own_part->n) = length;
    own_part->a = at_a(call, start, start);
    own_part->b = is_left ? at_b(call, start, 0) : at_b(call, 0, start);
    own_part->c = is_left ? at_c(call, start, 0) : at_c(call, 0, start);
    /* Left: A(this half, the other) B(the other). Right: B(the other) A(the other, this half). The stored square is A21
     * or A12. */
    const bool is_stored = is_left == ((half == 1) == is_lower);
    const char op = is_stored ? 'N' : mirrored;
    sg_blas_part *const product = &parts[2 + half];
    if (is_left)
      gemm(product, call, length, call->n, other_length, op, square, call->lda, 'N', at_b(call, other_start, 0),
           call->ldb, own_part->c, call->ldc);
    else
      gemm(product, call, call->m, length, other_length, 'N', at_b(call, 0, other_start), call->ldb, op, square,
           call->lda, own_part->c, call->ldc);
    set_one(product, true);
  }
  return 4;
}

/* trmm, trsm: with T = op(A), the halves of T's triangle and its square, T21 or T12. */
static int split_triangular(const sg_blas_call *call, sg_blas_part parts[]) {
  const bool is_left = call->side == 'L', solves = call->entry->number == SG_BLAS_TRSM;
  const bool is_lower = (call->uplo == 'L') == (call->transa == 'N'); /* T */
  const int64_t size = is_left ? call->m : call->n, n1 = first_half(size), n2 = size - n1;
  const void *const square = call->uplo == 'L' ? at_a(call, n1, 0) : at_a(call, 0, n1);
  /* B's half that the square's product goes into; the other one is the product's factor. */
  const int target = is_left == is_lower;
  const int64_t starts[2] = {0, n1}, lengths[2] = {n1, n2};
  const void *halves[2];
  for (int half = 0; half < 2; ++half)
    halves[half] = is_left ? at_b(call, starts[half], 0) : at_b(call, 0, starts[half]);
  /* A product needs the factor before trmm overwrites it, and after trsm has solved for it. */
  sg_blas_part *const product = &parts[1];
  for (int i = 0; i < 2; ++i) {
    const int half = (i == 0) == solves ? 1 - target : target;
    sg_blas_part *const part = &parts[2 * i];
    part->call = *call;
    *(is_left ? &part->call.m : &part->call.n) = lengths[half];
    part->call.a = at_a(call, starts[half], starts[half]);
    part->call.b = halves[half];
    if (solves && i == 1) set_one(part, false); /* alpha is in the product */
  }
  void *const result = (void *)halves[target];
  const void *const factor = halves[1 - target];
  if (is_left)
    gemm(product, call, lengths[target], call->n, lengths[1 - target], call->transa, square, call->lda, 'N', factor,
         call->ldb, result, call->ldb);
  else
    gemm(product, call, call->m, lengths[target], lengths[1 - target], 'N', factor, call->ldb, call->transa, square,
         call->lda, result, call->ldb);
  if (solves) {
    product->call.beta = call->alpha;
    product->call.alpha = own(product->alpha, call->entry->type, -1, 0);
  } else {
    set_one(product, true);
  }
  return 3;
}

int sg_blas_split(const sg_blas_call *call, sg_blas_part parts[SG_BLAS_PARTS_AT_MOST]) {
  switch (call->entry->number) {
    case SG_BLAS_GEMM: return 0;
    case SG_BLAS_SYMM:
    case SG_BLAS_HEMM: return (call->side == 'L' ? call->m : call->n) < 2 ? 0 : split_symmetric(call, parts);
    case SG_BLAS_TRMM:
    case SG_BLAS_TRSM: return (call->side == 'L' ? call->m : call->n) < 2 ? 0 : split_triangular(call, parts);
    default: return call->n < 2 ? 0 : split_result(call, parts);
  }
}
