/* SPDX-License-Identifier: Apache-2.0 */
#include "predictions.h"

#include <pthread.h>
#include <string.h>

#include "batch.h"
#include "device.h"
#include "residents.h"

/* What a prediction depends on. */
typedef struct form {
  int64_t m, n, k, lda, ldb, ldc;
  uint64_t batch; /* a hash of its descriptions */
  int32_t routine, layout;
  char type, side, uplo, transa, transb, diag, reads_c;
  sg_blas_places places;
} form;

/* A plan takes 1 to 20 ms. */
static const double planning_seconds = 5e-3;
static const double unplanned = -1;

enum { PLACES = 1024, READS_BEFORE_A_TRIAL = 32 };
static unsigned host_reads; /* though the device has copies; atomic */
/* A check must take less than this part of what a copy gains to be worth the cores that it occupies. */
static const double worthwhile = 0.8;
static pthread_mutex_t predictions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  form of;
  double seconds;     /* of the device; 0: unknown; or `unplanned` */
  double cpu_seconds; /* of its calls until it is planned */
} remembered[PLACES]; /* by hash: a form replaces another of its place */

void sg_blas_predictions_after_fork(void) { pthread_mutex_init(&predictions_lock, NULL); }

static size_t place_of(const form *of) {
  uint64_t hash = 1469598103934665603u; /* FNV-1a */
  for (size_t i = 0; i < sizeof *of; ++i) hash = (hash ^ ((const unsigned char *)of)[i]) * 1099511628211u;
  return (size_t)(hash ^ (hash >> 32)) % PLACES;
}

static void write_form(const sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places,
                       form *to) {
  memset(to, 0, sizeof *to); /* its gaps, too, are compared */
  to->m = call->m, to->n = call->n, to->k = call->k, to->lda = call->lda, to->ldb = call->ldb, to->ldc = call->ldc;
  to->routine = (int32_t)call->entry->number, to->layout = (int32_t)call->layout;
  to->type = call->entry->type, to->side = call->side, to->uplo = call->uplo, to->diag = call->diag;
  to->transa = call->transa, to->transb = call->transb;
  to->reads_c = sg_blas_reads_c(call, settings);
  to->places = *places;
  if (call->batch != NULL) to->batch = sg_blas_hash_of_batch(call, settings);
}

double sg_blas_predicted(const sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places,
                         double cpu_seconds) {
  form of;
  write_form(call, settings, places, &of);
  const size_t place = place_of(&of);
  pthread_mutex_lock(&predictions_lock);
  if (memcmp(&remembered[place].of, &of, sizeof of) != 0) {
    remembered[place].of = of;
    remembered[place].seconds = unplanned;
    remembered[place].cpu_seconds = 0;
  }
  double seconds = remembered[place].seconds;
  if (seconds == unplanned) remembered[place].cpu_seconds += cpu_seconds;
  const bool is_worth_a_plan = remembered[place].cpu_seconds >= planning_seconds;
  pthread_mutex_unlock(&predictions_lock);
  if (seconds != unplanned) return seconds;
  if (!is_worth_a_plan) return 0;
  seconds = sg_blas_predict(call, settings, places);
  pthread_mutex_lock(&predictions_lock);
  if (memcmp(&remembered[place].of, &of, sizeof of) == 0) remembered[place].seconds = seconds;
  pthread_mutex_unlock(&predictions_lock);
  return seconds;
}

double sg_blas_choose_operands(sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places,
                               double checking, double cpu_seconds) {
  const double with_copies = sg_blas_predicted(call, settings, places, cpu_seconds);
  const bool has_copies = places->is_resident[0] || places->is_resident[1];
  if (with_copies == 0) return 0;
  if (!has_copies || settings->residency != SG_BLAS_RESIDENCY_AUTO) return with_copies + checking;
  sg_blas_places in_host_memory = *places;
  for (int i = 0; i < 2; ++i) {
    if (!places->is_resident[i]) continue;
    in_host_memory.is_resident[i] = false;
    in_host_memory.kinds[i] = SG_MEMORY_PAGEABLE;
  }
  const double without = sg_blas_predicted(call, settings, &in_host_memory, cpu_seconds);
  if (without == 0 || without > with_copies + checking / worthwhile) return with_copies + checking;
  /* Now and then a check is timed again. */
  call->reads_host_operands = __atomic_add_fetch(&host_reads, 1, __ATOMIC_RELAXED) % READS_BEFORE_A_TRIAL != 0;
  if (!call->reads_host_operands) return with_copies + checking;
  sg_blas_add_counts(&(sg_blas_residency_statistics){.host_reads = 1});
  return without;
}
