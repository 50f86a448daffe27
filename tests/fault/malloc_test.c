/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses every allocation (and every thread) of the process in turn, while a script runs over the public API: each
 * time there must be a status, nothing may leak, and the next pass must work. Run with malloc_shim.so preloaded.
 *
 *   malloc_test DEVICE allocations [N]   each allocation, one at a time; from the N-th
 *   malloc_test DEVICE allocations-from  each allocation and all behind it
 *   malloc_test DEVICE threads           each start of a thread
 *   malloc_test DEVICE first N           the N-th allocation of a process that has not used the library before
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "malloc_shim.h"
#include "script.h"

static shim_open_fn shim_open;
static shim_close_fn shim_close;
static shim_live_fn shim_live;

static int find_shim(void) {
  *(void **)&shim_open = dlsym(RTLD_DEFAULT, "shim_open");
  *(void **)&shim_close = dlsym(RTLD_DEFAULT, "shim_close");
  *(void **)&shim_live = dlsym(RTLD_DEFAULT, "shim_live");
  return shim_open && shim_close && shim_live;
}

static void pause_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

/* Blocks that are still allocated once the last context has gone, which closes on a library thread: `expected` at most,
 * or what remains when none has been freed for some time. */
static long settled_live(long expected, int quiet_ms) {
  long live = shim_live();
  int quiet;
  for (quiet = 0; quiet < quiet_ms && live > expected; quiet += 2) {
    const long before = live;
    pause_ms(2);
    live = shim_live();
    if (live != before) quiet = 0;
  }
  return live;
}

static int clean_pass(const char *device, const char *when) {
  const struct script_outcome outcome = run_script(device);
  if (!outcome.failed && !outcome.wrong) return 1;
  fprintf(stderr, "a clean pass %s: %d failures, %d wrong answers (%s)\n", when, outcome.failed, outcome.wrong,
          outcome.last_failure);
  return 0;
}

/* One pass with one request refused. */
static struct script_outcome spoilt_pass(const char *device, struct shim_plan plan, struct shim_report *report) {
  struct script_outcome outcome;
  shim_open(plan);
  outcome = run_script(device);
  *report = shim_close();
  return outcome;
}

static int sweep(const char *device, const char *what, long first) {
  const int threads = strcmp(what, "threads") == 0;
  struct shim_plan plan = {0, 0, strcmp(what, "allocations-from") == 0};
  long n, reported = 0, live;
  int i;
  /* Caches and pools are filled first. */
  for (i = 0; i < 5; ++i)
    if (!clean_pass(device, "before any refusal")) return 1;
  live = settled_live(0, 200);
  for (n = first;; ++n) {
    struct shim_report report;
    struct script_outcome outcome;
    *(threads ? &plan.thread : &plan.allocation) = n;
    outcome = spoilt_pass(device, plan, &report);
    if (outcome.wrong) {
      fprintf(stderr, "%s %ld refused: %d wrong answers\n", what, n, outcome.wrong);
      return 1;
    }
    if ((threads ? report.threads : report.allocations) < n) break;
    reported += outcome.failed > 0;
    if (settled_live(live, 200) > live) {
      /* A cache may have grown, and the machine may be slow. A leak grows by at least one block each time that the same
       * request is refused; the C library's cache of stacks, with a block for each, varies by some. */
      enum { TIMES = 20 };
      const long before = shim_live();
      for (i = 0; i < TIMES; ++i) spoilt_pass(device, plan, &report);
      if (settled_live(before + TIMES - 1, 5000) >= before + TIMES) {
        fprintf(stderr, "%s %ld refused %d times more: %ld blocks became %ld (%s)\n", what, n, TIMES, before,
                shim_live(), outcome.last_failure);
        return 1;
      }
      live = shim_live();
    }
    if (n % 50 == 0 && !clean_pass(device, "after a refusal")) return 1;
  }
  if (!clean_pass(device, "at the end")) return 1;
  printf("%s: %ld refused in turn, %ld of the passes reported it\n", what, n - first, reported);
  return n <= first;
}

/* In a process that has loaded the library and not called it yet. */
static int first_use(const char *device, long n) {
  const struct shim_plan plan = {n, 0, 0};
  struct shim_report report;
  const struct script_outcome outcome = spoilt_pass(device, plan, &report);
  if (outcome.wrong || !clean_pass(device, "after a first use that failed")) return 1;
  printf("%ld\n", report.allocations);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  if (!find_shim()) {
    fprintf(stderr, "malloc_shim.so is not preloaded\n");
    return 2;
  }
  if (strcmp(argv[2], "first") == 0 && argc == 4) return first_use(argv[1], atol(argv[3]));
  return sweep(argv[1], argv[2], argc == 4 ? atol(argv[3]) : 1);
}
