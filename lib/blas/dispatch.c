/* SPDX-License-Identifier: Apache-2.0 */
/* Where each call of level 3 is computed. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <streamgemm/blas.h>
#include <streamgemm/types.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "cusolver.h"
#include "device.h"
#include "dispatcher.h"
#include "floating_point.h"
#include "lapack.h"
#include "operations.h"
#include "parts.h"
#include "predictions.h"
#include "rates.h"
#include "report.h"
#include "residents.h"
#include "resolve.h"
#include "solve.h"
#include "validity.h"
#include "workers.h"

double sg_blas_gate = 0; /* the first call of level 3 comes to sg_blas_begin in any case */

static sg_blas_settings settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_started;     /* this process has called level 3; atomic */
static bool may_have_device; /* false: none is looked for */
static bool is_after_fork;   /* the parent had used the device; atomic */
static bool has_model_floors;
static pthread_mutex_t floors_lock = PTHREAD_MUTEX_INITIALIZER;
static const char types[] = "sdcz";
static double floors[4]; /* least work for the device, of each type; atomic */
/* 1 in the process that set it: the system gives 0 to a child, however it was forked. */
static int *process_mark;
static int plain_mark; /* where the system has no such page */

/* This thread is inside a call of level 3, or has switched the device off. */
static __thread bool is_inside, is_disabled;
/* The CPU library solves what the device could not: the routines that it calls by their names are not tried again. */
static __thread bool is_unsolved;

/* The program's and the CPU BLAS's, during a call. */
static __thread unsigned long kept_state;
/* What the CPU BLAS has taken for the call, without plans and the opening of the device. */
static __thread double cpu_seconds;

static void call_cpu(const sg_blas_call *call) {
  const double started = sg_blas_now(); /* the clock, too, leaves what it raises */
  sg_blas_set_floating_point_state(kept_state);
  call->entry->call_cpu(call);
  kept_state = sg_blas_floating_point_state();
  cpu_seconds += sg_blas_now() - started;
}

static double started_at;
static uint64_t started_ticks;
void sg_blas_start_clock(void) {
  started_at = sg_blas_now();
  started_ticks = sg_blas_ticks();
}
double sg_blas_tick(void) {
  const uint64_t ticks = sg_blas_ticks() - started_ticks;
  return ticks > 0 ? (sg_blas_now() - started_at) / (double)ticks : 0;
}

static double *floor_of(char type) { return &floors[strchr(types, type) - types]; }

static double load(const double *from) {
  double value;
  __atomic_load(from, &value, __ATOMIC_RELAXED);
  return value;
}

static bool has_device(void) {
  return settings.is_on && may_have_device && !is_after_fork && !sg_blas_device_is_closed();
}

/* Calls below the gate are not looked at: none is where a report counts them all. */
static void set_gate(void) {
  double gate = __builtin_inf();
  for (int i = 0; i < 4 && has_device(); ++i)
    if (load(&floors[i]) < gate) gate = load(&floors[i]);
  if (settings.report != NULL) gate = 0;
  __atomic_store(&sg_blas_gate, &gate, __ATOMIC_RELAXED);
}

static void clear_mark(void) { *process_mark = 0; }

static void start(void) {
  sg_blas_start_clock();
  sg_blas_read_settings(&settings);
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  process_mark = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (process_mark == MAP_FAILED || madvise(process_mark, page, MADV_WIPEONFORK) != 0) {
    process_mark = &plain_mark;
    pthread_atfork(NULL, NULL, clear_mark);
  }
  *process_mark = 1;
  may_have_device = sg_blas_may_have_device(&settings);
  for (int i = 0; i < 4; ++i) {
    const double floor =
        settings.has_minimum ? settings.minimum : sg_blas_cheap_floor(types[i], sg_blas_rate_of(types[i], INFINITY));
    __atomic_store(&floors[i], &floor, __ATOMIC_RELAXED);
  }
  has_model_floors = settings.has_minimum;
  set_gate();
  __atomic_store_n(&has_started, true, __ATOMIC_RELEASE);
}

/* In a child of fork: its only thread is this one, which may have been inside of a lock's owner's copy. */
static void leave_parent(void) {
  *process_mark = 1;
  if (sg_blas_device_was_touched()) __atomic_store_n(&is_after_fork, true, __ATOMIC_RELEASE);
  pthread_mutex_init(&floors_lock, NULL);
  sg_blas_device_after_fork();
  sg_blas_workers_after_fork();
  sg_blas_predictions_after_fork();
  sg_blas_report_after_fork();
  sg_blas_resolve_after_fork();
  set_gate();
}

static void check_process(void) {
  pthread_once(&once, start);
  if (__atomic_load_n(process_mark, __ATOMIC_RELAXED) == 0) leave_parent();
}

/* All ranks need the same one. So it does not depend on whether the device opens, and stays if failures close it. A
 * GEMM of depth k has k / 8 operations for each byte of its C in f64 that crosses the link; PBLAS counts the bytes of a
 * rank's panels, its rows times this, in 31 bits. */
int sg_blas_pblas_block(char precision) {
  enum { on_a_gpu = 512 };
  check_process();
  if (settings.pblas_block > 0) return settings.pblas_block;
  if (!settings.is_on || !may_have_device || strncmp(settings.device, "cpu", 3) == 0) return 0;
  return sg_blas_upper(precision) == 'Z' ? on_a_gpu / 2 : on_a_gpu;
}

static double predict_square(int n, void *type) { return sg_blas_predict_square(*(char *)type, n); }

/* The floors by the model, once the device is open. */
static void find_model_floors(void) {
  pthread_mutex_lock(&floors_lock);
  if (!has_model_floors) {
    for (int i = 0; i < 4; ++i) {
      char type = types[i];
      double floor = sg_blas_square_floor(sg_blas_rate_of(type, INFINITY), predict_square, &type);
      __atomic_store(&floors[i], &floor, __ATOMIC_RELAXED);
    }
    set_gate();
    __atomic_store_n(&has_model_floors, true, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&floors_lock);
}

/* Whether a call that is one operation, with valid arguments, goes to the device. */
static sg_blas_reason choose(sg_blas_call *call) {
  const char type = call->entry->type;
  if (!has_device()) return SG_BLAS_NO_DEVICE;
  if (call->work < load(floor_of(type))) return SG_BLAS_SMALL;
  if (!sg_blas_open_device(&settings)) return set_gate(), SG_BLAS_NO_DEVICE;
  if (settings.has_minimum) return SG_BLAS_ON_DEVICE;
  if (!__atomic_load_n(&has_model_floors, __ATOMIC_ACQUIRE)) find_model_floors();
  sg_blas_places places;
  const double checking = sg_blas_places_of(call, &settings, &places);
  if (places.has_device_operand) return SG_BLAS_ON_DEVICE;
  if (call->work < load(floor_of(type))) return SG_BLAS_SMALL;
  return sg_blas_device_is_faster(call, &settings, &places, checking) ? SG_BLAS_ON_DEVICE : SG_BLAS_CPU_FASTER;
}

/* Computes an operation where `reason` says, and by the CPU if the device could not. */
static void compute_operation(sg_blas_call *call, sg_blas_outcome *outcome) {
  if (call->reason == SG_BLAS_ON_DEVICE && !sg_blas_device_compute(call, &settings, outcome)) {
    call->reason = SG_BLAS_DEVICE_FAILED;
    set_gate();
  }
  if (call->reason == SG_BLAS_ON_DEVICE)
    sg_blas_learn_device(call->is_pageable, call->predicted_seconds, outcome->job_seconds);
  else
    call_cpu(call);
}

/* Computes a call, in column-major form but for GEMMs. Where it is no operation the device computes the GEMMs among its
 * parts that are worth it, and the CPU the rest. */
static void compute(sg_blas_call *call, sg_blas_outcome *outcome) {
  if (sg_blas_is_operation(call, &settings)) {
    call->reason = choose(call);
    compute_operation(call, outcome);
    return;
  }
  sg_blas_part parts[SG_BLAS_PARTS_AT_MOST];
  const int count = sg_blas_split(call, parts);
  call->reason = SG_BLAS_SMALL;
  for (int i = 0; i < count; ++i)
    if (parts[i].call.entry->number == SG_BLAS_GEMM) {
      parts[i].call.reason = call->reason = choose(&parts[i].call);
      call->device_seconds += parts[i].call.device_seconds;
    }
  if (call->reason != SG_BLAS_ON_DEVICE) {
    call_cpu(call);
    return;
  }
  for (int i = 0; i < count; ++i) {
    sg_blas_call *const part = &parts[i].call;
    if (part->entry->number == SG_BLAS_GEMM)
      compute_operation(part, outcome);
    else
      compute(part, outcome);
    if (part->reason == SG_BLAS_DEVICE_FAILED) call->reason = SG_BLAS_DEVICE_FAILED;
  }
}

/* Whether a call is below the floor of its type: it comes here only to be counted. */
static bool is_only_counted(const sg_blas_call *call) {
  return settings.report != NULL && call->work < load(floor_of(call->entry->type));
}

static void compute_small(sg_blas_call *call) {
  if (call->reason == SG_BLAS_ON_DEVICE)
    call->reason = !settings.is_on ? SG_BLAS_SWITCHED_OFF
                   : is_after_fork ? SG_BLAS_AFTER_FORK
                   : !has_device() ? SG_BLAS_NO_DEVICE
                                   : SG_BLAS_SMALL;
  is_inside = true;
  const uint64_t started = sg_blas_ticks();
  call->entry->call_cpu(call);
  const uint64_t ended = sg_blas_ticks();
  is_inside = false;
  sg_blas_count_small(call, ended - started);
}

bool sg_blas_compute(sg_blas_call *call) {
  if (is_inside || is_disabled) return false; /* inside: a CPU BLAS that calls its own routines by their names */
  kept_state = sg_blas_floating_point_state();
  check_process();
  call->reason = sg_blas_check(call);
  if (call->reason != SG_BLAS_INVALID && is_only_counted(call)) return compute_small(call), true;
  if (call->reason == SG_BLAS_INVALID) { /* the program's own xerbla may not return */
    if (settings.report != NULL) sg_blas_count(call, 0, NULL);
    sg_blas_set_floating_point_state(kept_state);
    return false;
  }
  sg_blas_outcome outcome = {0};
  const double started = sg_blas_now();
  cpu_seconds = 0;
  is_inside = true;
  if (call->reason == SG_BLAS_ON_DEVICE && is_after_fork) call->reason = SG_BLAS_AFTER_FORK;
  if (!settings.is_on) call->reason = SG_BLAS_SWITCHED_OFF;
  if (call->reason != SG_BLAS_ON_DEVICE) {
    call_cpu(call);
  } else {
    sg_blas_call columns =
        call->entry->number == SG_BLAS_GEMM || call->batch != NULL ? *call : sg_blas_in_columns(call);
    compute(&columns, &outcome);
    call->reason = columns.reason;
    call->device_seconds = columns.device_seconds;
  }
  is_inside = false;
  const double seconds = sg_blas_now() - started;
  const bool is_on_device = call->reason == SG_BLAS_ON_DEVICE;
  if (!is_on_device && call->batch == NULL && call->reason != SG_BLAS_EMPTY && call->reason != SG_BLAS_DEVICE_FAILED)
    sg_blas_learn(call->entry->type, sg_blas_least_size(call), call->work, cpu_seconds);
  if (settings.report != NULL) sg_blas_count(call, seconds, is_on_device ? &outcome : NULL);
  sg_blas_set_floating_point_state(kept_state);
  return true;
}

static sg_blas_reason choose_solver(const sg_blas_solver_call *solver) {
  if (!settings.is_on) return SG_BLAS_SWITCHED_OFF;
  const double size = (double)sg_blas_solver_size(solver);
  const bool is_small =
      settings.has_minimum ? size * size * size < settings.minimum : size < (double)sg_blas_least_solver_size(solver);
  if (is_small) return SG_BLAS_SMALL;
  if (solver->lwork == -1 || solver->lrwork == -1 || solver->liwork == -1) return SG_BLAS_EMPTY; /* asks for sizes */
  if (!sg_blas_is_valid_solver(solver)) return SG_BLAS_INVALID;
  if (is_after_fork) return SG_BLAS_AFTER_FORK;
  if (!has_device() || !sg_blas_open_device(&settings)) return SG_BLAS_NO_DEVICE;
  const bool has_solver = settings.serves_lapack && sg_blas_device_is_cuda() && sg_blas_has_cusolver();
  return has_solver ? SG_BLAS_ON_DEVICE : SG_BLAS_NO_SOLVER;
}

bool sg_blas_solve(sg_blas_entry *entry, void *const given[], sg_blas_solver_call *solver) {
  solver->is_counted = solver->ends_unsolved = false;
  if (is_inside || is_disabled || is_unsolved) return false;
  kept_state = sg_blas_floating_point_state();
  check_process();
  sg_blas_read_solver(entry, given, solver);
  sg_blas_call *const call = &solver->call;
  sg_blas_outcome outcome = {0};
  solver->started = sg_blas_now();
  call->reason = choose_solver(solver);
  if (call->reason == SG_BLAS_ON_DEVICE) {
    is_inside = true;
    call->reason = sg_blas_device_solve(solver, &outcome);
    is_inside = false;
    if (call->reason == SG_BLAS_DEVICE_FAILED) set_gate();
    solver->ends_unsolved = is_unsolved = call->reason != SG_BLAS_ON_DEVICE;
  }
  solver->is_counted = settings.report != NULL;
  const bool is_solved = call->reason == SG_BLAS_ON_DEVICE;
  if (is_solved && solver->is_counted) sg_blas_count(call, sg_blas_now() - solver->started, &outcome);
  sg_blas_set_floating_point_state(kept_state);
  return is_solved;
}

void sg_blas_solved_by_cpu(sg_blas_solver_call *solver) {
  if (solver->ends_unsolved) is_unsolved = false;
  if (solver->is_counted) sg_blas_count(&solver->call, sg_blas_now() - solver->started, NULL);
}

__attribute__((destructor)) static void finish(void) {
  if (!__atomic_load_n(&has_started, __ATOMIC_ACQUIRE) || settings.report == NULL) return;
  if (__atomic_load_n(process_mark, __ATOMIC_RELAXED) == 0) return; /* a child that has called nothing */
  sg_blas_save_report(&settings);
}

SG_BLAS_EXPORT int32_t sg_blas_version(void) { return SG_VERSION; }

SG_BLAS_EXPORT void *sg_blas_cpu_function(const char *name) { return name == NULL ? NULL : sg_blas_find(name); }

SG_BLAS_EXPORT sg_status sg_blas_set_cpu_function(const char *name, void *address) {
  return name != NULL && sg_blas_replace(name, address) ? SG_STATUS_OK : SG_STATUS_INVALID_ARGUMENT;
}

SG_BLAS_EXPORT sg_status sg_blas_report(char *text, uint64_t size, uint64_t *out_size) {
  if (text == NULL && size > 0) return SG_STATUS_INVALID_ARGUMENT;
  check_process();
  const size_t needed = sg_blas_write_report(&settings, text, size);
  if (out_size != NULL) *out_size = needed;
  return SG_STATUS_OK;
}

SG_BLAS_EXPORT int32_t sg_blas_enable(int32_t on) {
  const int32_t before = !is_disabled;
  is_disabled = on == 0;
  return before;
}

SG_BLAS_EXPORT void sg_blas_forget(const void *memory, uint64_t bytes) {
  check_process();
  if (memory != NULL && bytes > 0) sg_blas_drop_residents(memory, bytes);
}
