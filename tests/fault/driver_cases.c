/* SPDX-License-Identifier: Apache-2.0 */
/* Cases that end in every way, for the test of the driver. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"

static void fine(void) {
  puts("fine");
  exit(0);
}
static void wrong(void) { exit(3); }
static void dies(void) { raise(SIGSEGV); }
static void aborts(void) { abort(); }
static void hangs(void) {
  for (;;) pause();
}
static void leaves_a_child_that_hangs(void) {
  if (fork() == 0) hangs();
  exit(0);
}
static void complains(void) {
  fputs("a complaint\n", stderr);
  exit(0);
}
static int failed = 0;
static void fails_once(void) { failed = test_seed == 1; }
static int result(void) { return failed; }
static void skips(void) { exit(77); }

static const struct test_case cases[] = {
    {"fine", fine},           {"wrong", wrong},           {"dies", dies},
    {"aborts", aborts},       {"hangs", hangs},           {"leaves_a_child_that_hangs", leaves_a_child_that_hangs},
    {"complains", complains}, {"fails_once", fails_once}, {"skips", skips},
};

int main(int argc, char **argv) {
  return run_cases(cases, sizeof cases / sizeof cases[0], result, argv + 1, argc - 1, 0.5);
}
