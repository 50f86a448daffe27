/* SPDX-License-Identifier: Apache-2.0 */
#include "predictions.h"

#include <pthread.h>
#include <string.h>

#include "batch.h"
#include "device.h"
#include "rates.h"
#include "residents.h"

/* What a prediction depends on, but for its sizes within an eighth: programs that factor a matrix call with ever new
 * ones.
 */
typedef struct form {
  int64_t m, n, k, lda, ldb, ldc; /* by class */
  unsigned tight;                 /* leading dimensions that are a size, as bits */
  uint64_t batch;                 /* a hash of its descriptions */
  int32_t routine, layout;
  char type, side, uplo, transa, transb, diag, reads_c;
  sg_blas_places places;
} form;

/* A plan takes 1 to 60 ms. */
static const double planning_seconds = 5e-3;
static const double unplanned = -1;

enum { PLACES = 1024, CHOICES_BEFORE_A_TRIAL = 64 };
/* Atomic: calls that read host memory though the device has copies; calls that the CPU computes because the device
   takes longer than its model says. */
static unsigned host_reads, cpu_calls;
/* A check must take less than this part of what a copy gains to be worth the cores that it occupies. */
static const double worthwhile = 0.8;
static pthread_mutex_t predictions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  form of;
  double work;        /* of the call that was planned for all of its class */
  double seconds;     /* of the device, for that call; 0: unknown; or `unplanned` */
  double cpu_seconds; /* of its calls until it is planned */
} remembered[PLACES]; /* by hash: a form replaces another of its place */

void sg_blas_predictions_after_fork(void) { pthread_mutex_init(&predictions_lock, NULL); }

static size_t place_of(const form *of) {
  uint64_t hash = 1469598103934665603u; /* FNV-1a */
  for (size_t i = 0; i < sizeof *of; ++i) hash = (hash ^ ((const unsigned char *)of)[i]) * 1099511628211u;
  return (size_t)(hash ^ (hash >> 32)) % PLACES;
}

/* All but its four leading bits; small sizes are exact. */
static int64_t class_of(int64_t size) {
  int dropped = 0;
  while (size >> dropped > 15) ++dropped;
  return size <= 64 ? size : size >> dropped << dropped;
}

static void write_form(const sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places,
                       form *to) {
  memset(to, 0, sizeof *to); /* its gaps, too, are compared */
  const int64_t sizes[] = {call->m, call->n, call->k}, lds[] = {call->lda, call->ldb, call->ldc};
  for (int i = 0; i < 9; ++i) to->tight |= (unsigned)(lds[i / 3] == sizes[i % 3]) << i;
  to->m = class_of(call->m), to->n = class_of(call->n), to->k = class_of(call->k);
  to->lda = class_of(call->lda), to->ldb = class_of(call->ldb), to->ldc = class_of(call->ldc);
  to->routine = (int32_t)call->entry->number, to->layout = (int32_t)call->layout;
  to->type = call->entry->type, to->side = call->side, to->uplo = call->uplo, to->diag = call->diag;
  to->transa = call->transa, to->transb = call->transb;
  to->reads_c = sg_blas_reads_c(call, settings);
  to->places = *places;
  if (call->batch != NULL) to->batch = sg_blas_hash_of_batch(call, settings);
}

/* Seconds of the device by the plan of the call's class; 0: unknown, or not planned yet. A class is planned once the
   CPU, which takes `cpu_seconds` for the call, would have taken as long for its calls as a plan takes. */
static double predicted(const sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places,
                        double cpu_seconds) {
  form of;
  write_form(call, settings, places, &of);
  const size_t place = place_of(&of);
  pthread_mutex_lock(&predictions_lock);
  if (memcmp(&remembered[place].of, &of, sizeof of) != 0) {
    remembered[place].of = of;
    remembered[place].work = call->work;
    remembered[place].seconds = unplanned;
    remembered[place].cpu_seconds = 0;
  }
  double seconds = remembered[place].seconds;
  const double times_the_work = call->work / remembered[place].work;
  if (seconds == unplanned) remembered[place].cpu_seconds += cpu_seconds;
  const bool is_worth_a_plan = remembered[place].cpu_seconds >= planning_seconds;
  pthread_mutex_unlock(&predictions_lock);
  if (seconds != unplanned) return seconds * times_the_work;
  if (!is_worth_a_plan) return 0;
  seconds = sg_blas_predict(call, settings, places);
  pthread_mutex_lock(&predictions_lock);
  if (memcmp(&remembered[place].of, &of, sizeof of) == 0)
    remembered[place].work = call->work, remembered[place].seconds = seconds;
  pthread_mutex_unlock(&predictions_lock);
  return seconds;
}

/* Now and then a choice is not taken, so that what led to it is measured again. */
static bool is_taken(unsigned *count) {
  return __atomic_add_fetch(count, 1, __ATOMIC_RELAXED) % CHOICES_BEFORE_A_TRIAL != 0;
}

/* Whether a call in mode auto does better without copies, which the device has of some operands; `without`: its
   predicted seconds then. */
static bool gains_nothing(const sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places,
                          double with_copies, double cpu_seconds, double *without) {
  sg_blas_places in_host_memory = *places;
  for (int i = 0; i < 2; ++i) {
    if (!places->is_resident[i]) continue;
    in_host_memory.is_resident[i] = false;
    in_host_memory.kinds[i] = SG_MEMORY_PAGEABLE;
  }
  *without = predicted(call, settings, &in_host_memory, cpu_seconds);
  return *without > 0 && *without <= with_copies;
}

bool sg_blas_device_is_faster(sg_blas_call *call, const sg_blas_settings *settings, const sg_blas_places *places,
                              double checking) {
  const double rate = sg_blas_rate_of(call->entry->type, sg_blas_least_size(call)), cpu_seconds = call->work / rate;
  call->predicted_seconds = predicted(call, settings, places, cpu_seconds);
  if (call->predicted_seconds == 0) return false;
  for (int i = 0; i < 3; ++i) call->is_pageable = call->is_pageable || places->kinds[i] == SG_MEMORY_PAGEABLE;
  const bool has_copies = places->is_resident[0] || places->is_resident[1];
  double without;
  if (has_copies && settings->residency == SG_BLAS_RESIDENCY_AUTO &&
      gains_nothing(call, settings, places, call->predicted_seconds + checking / worthwhile, cpu_seconds, &without) &&
      is_taken(&host_reads)) {
    call->reads_host_operands = call->is_pageable = true;
    call->predicted_seconds = without;
    checking = 0;
  }
  call->device_seconds = call->predicted_seconds + checking;
  if (!sg_blas_device_wins(call->device_seconds, call->work, rate)) return false;
  const double expected = call->predicted_seconds * sg_blas_slowdown(call->is_pageable) + checking;
  const bool wins = sg_blas_device_wins(expected, call->work, rate) || !is_taken(&cpu_calls);
  if (wins && call->reads_host_operands) sg_blas_add_counts(&(sg_blas_residency_statistics){.host_reads = 1});
  return wins;
}
