/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "operations.h"
#include "validity.h"

/* GEMMs of one shape. */
typedef struct group {
  sg_blas_call call; /* the first of them */
  int64_t size;
  const void *const *a, *const *b; /* the addresses of all, or strides */
  void *const *c;
  int64_t stridea, strideb, stridec;
} group;

static size_t bytes_of(const sg_blas_entry *entry) { return sg_blas_size_of(sg_blas_type_of(entry->type)); }

static int64_t integer_at(const sg_blas_entry *entry, const void *array, int64_t index) {
  return entry->is_wide ? ((const int64_t *)array)[index] : ((const int32_t *)array)[index];
}

static char letter_at(const sg_blas_arguments *given, const void *array, int64_t index) {
  return given->order != NULL ? sg_blas_letter_of(((const int *)array)[index])
                              : sg_blas_upper(((const char *)array)[index]);
}

static int64_t group_count(const sg_blas_entry *entry, const sg_blas_arguments *given) {
  return given->sizes == NULL ? 1 : integer_at(entry, given->count, 0);
}

/* The group that follows `first` GEMMs. */
static void read_group(const sg_blas_call *of, int64_t index, int64_t first, group *out) {
  sg_blas_entry *const entry = of->entry;
  const sg_blas_arguments *const given = of->batch->given;
  memset(out, 0, sizeof *out);
  sg_blas_call *const call = &out->call;
  call->entry = entry->gemm, call->layout = of->layout;
  call->transa = letter_at(given, given->transa, index), call->transb = letter_at(given, given->transb, index);
  call->m = integer_at(entry, given->m, index), call->n = integer_at(entry, given->n, index);
  call->k = integer_at(entry, given->k, index), call->lda = integer_at(entry, given->lda, index);
  call->ldb = integer_at(entry, given->ldb, index), call->ldc = integer_at(entry, given->ldc, index);
  call->alpha = (const char *)given->alpha + (size_t)index * bytes_of(entry);
  call->beta = (const char *)given->beta + (size_t)index * bytes_of(entry);
  if (given->sizes == NULL) {
    out->size = integer_at(entry, given->count, 0);
    out->stridea = integer_at(entry, given->stridea, 0), out->strideb = integer_at(entry, given->strideb, 0);
    out->stridec = integer_at(entry, given->stridec, 0);
    call->a = given->a, call->b = given->b, call->c = (void *)given->c;
  } else {
    out->size = integer_at(entry, given->sizes, index);
    if (out->size <= 0) return;
    out->a = (const void *const *)given->a + first, out->b = (const void *const *)given->b + first;
    out->c = (void *const *)given->c + first;
    call->a = out->a[0], call->b = out->b[0], call->c = out->c[0];
  }
}

static bool has_elements(const group *of) { return of->size > 0 && of->call.m > 0 && of->call.n > 0; }

static double work_of(const group *of) {
  return has_elements(of) ? (double)of->call.m * (double)of->call.n * (double)of->call.k * (double)of->size : 0;
}

static const void *matrix_at(const group *of, const void *const *all, const void *first, int64_t stride, int64_t item) {
  return all != NULL ? all[item] : (const char *)first + item * stride * (int64_t)bytes_of(of->call.entry);
}

sg_blas_reason sg_blas_check_batch(const sg_blas_call *call) {
  sg_blas_reason reason = SG_BLAS_EMPTY;
  int64_t first = 0;
  bool has_empty = false, is_vast = false;
  for (int64_t i = 0; i < group_count(call->entry, call->batch->given); ++i) {
    group each;
    read_group(call, i, first, &each);
    const sg_blas_reason of_group = each.size < 0 ? SG_BLAS_INVALID : sg_blas_check(&each.call);
    if (of_group == SG_BLAS_INVALID) return SG_BLAS_INVALID;
    first += each.size;
    if (!has_elements(&each)) continue;
    if (of_group == SG_BLAS_EMPTY) has_empty = true; /* C is scaled: nothing to multiply */
    if (of_group == SG_BLAS_VAST || each.size > INT32_MAX) is_vast = true;
    reason = SG_BLAS_ON_DEVICE;
  }
  return has_empty ? SG_BLAS_EMPTY : is_vast ? SG_BLAS_VAST : reason;
}

int32_t sg_blas_describe_batch(const sg_blas_call *call, const sg_blas_settings *settings) {
  int32_t count = 0;
  int64_t first = 0;
  for (int64_t i = 0; i < group_count(call->entry, call->batch->given); ++i) {
    group each;
    read_group(call, i, first, &each);
    first += each.size;
    if (!has_elements(&each)) continue;
    sg_gemm_desc *const desc = &call->batch->descs[count++];
    sg_blas_describe_gemm(&each.call, settings, desc);
    desc->batch = each.size;
    desc->stride_a = each.stridea, desc->stride_b = each.strideb, desc->stride_c = each.stridec;
    if (each.size > 1) desc->a_array = each.a, desc->b_array = each.b, desc->c_array = each.c;
  }
  return count;
}

uint64_t sg_blas_hash_of_batch(const sg_blas_call *call, const sg_blas_settings *settings) {
  const int32_t count = sg_blas_describe_batch(call, settings);
  uint64_t hash = 1469598103934665603u; /* FNV-1a */
  for (int32_t i = 0; i < count; ++i) {
    const sg_gemm_desc *const x = &call->batch->descs[i];
    const int64_t parts[] = {x->a.rows,
                             x->a.cols,
                             x->a.ld,
                             x->b.rows,
                             x->b.cols,
                             x->b.ld,
                             x->c.ld,
                             x->op_a,
                             x->op_b,
                             x->batch,
                             x->stride_a,
                             x->stride_b,
                             x->stride_c,
                             x->a_array != NULL,
                             x->beta.re != 0 || x->beta.im != 0};
    for (size_t j = 0; j < sizeof parts / sizeof parts[0]; ++j) hash = (hash ^ (uint64_t)parts[j]) * 1099511628211u;
  }
  return hash;
}

bool sg_blas_has_no_batch(const sg_blas_call *call) {
  sg_blas_cpu_address(call->entry); /* looks for it */
  return __atomic_load_n(&call->entry->cpu, __ATOMIC_ACQUIRE) == NULL;
}

void sg_blas_batch_by_gemm(const sg_blas_call *call) {
  const int64_t count = group_count(call->entry, call->batch->given);
  for (int computes = 0; computes < 2; ++computes) { /* the first time the groups are checked */
    int64_t first = 0;
    for (int64_t i = 0; i < count; ++i) {
      group each;
      read_group(call, i, first, &each);
      if (each.size <= 0) continue;
      first += each.size;
      const bool is_wrong = !computes && sg_blas_check(&each.call) == SG_BLAS_INVALID;
      if (is_wrong) each.size = 1;
      for (int64_t item = 0; item < each.size && (computes || is_wrong); ++item) {
        sg_blas_call one = each.call;
        one.a = matrix_at(&each, each.a, each.call.a, each.stridea, item);
        one.b = matrix_at(&each, each.b, each.call.b, each.strideb, item);
        one.c = (void *)matrix_at(&each, (const void *const *)each.c, each.call.c, each.stridec, item);
        one.entry->call_cpu(&one);
      }
      if (is_wrong) return;
    }
  }
}

/* Whether integers have the width that the name promises. OpenBLAS has some of these names without a suffix in builds
   with 64-bit integers, whose gemm has one: their arguments are passed on unread. */
static bool is_known(sg_blas_entry *entry) {
  Dl_info own, of_gemm;
  void *const address = sg_blas_cpu_address(entry), *const gemm = sg_blas_cpu_address(entry->gemm);
  if (__atomic_load_n(&entry->checked, __ATOMIC_RELAXED) == address) return true;
  const bool is_programs = dladdr(address, &own) == 0 || dladdr(gemm, &of_gemm) == 0; /* in no library */
  if (!is_programs && own.dli_fbase != of_gemm.dli_fbase) return false;
  __atomic_store_n(&entry->checked, address, __ATOMIC_RELAXED);
  return true;
}

/* Reads the sizes of the first group and the work of all. */
static bool read_sizes(sg_blas_call *call) {
  int64_t first = 0;
  const int64_t count = group_count(call->entry, call->batch->given);
  if (count > INT32_MAX) return false;
  for (int64_t i = 0; i < count; ++i) {
    group each;
    read_group(call, i, first, &each);
    if (each.size > 0) first += each.size;
    if (call->work == 0) {
      call->m = each.call.m, call->n = each.call.n, call->k = each.call.k;
      call->transa = each.call.transa, call->transb = each.call.transb;
    }
    call->work += work_of(&each);
  }
  return true;
}

void sg_blas_batched(sg_blas_entry *entry, const sg_blas_arguments *given) {
  sg_blas_batch batch = {given, NULL};
  sg_blas_call call = {.entry = entry, .batch = &batch};
  if (given->order != NULL) call.layout = sg_blas_layout_of(*(const int *)given->order);
  if (is_known(entry) && read_sizes(&call) && sg_blas_is_looked_at(call.work)) {
    const int64_t count = group_count(entry, given);
    batch.descs = count > 0 ? malloc((size_t)count * sizeof *batch.descs) : NULL;
    const bool is_computed = batch.descs != NULL && sg_blas_compute(&call);
    free(batch.descs);
    if (is_computed) return;
  }
  entry->call_cpu(&call);
}
