/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the cases of a program: the program has the library loaded and has not used it when each run forks, so that a
 * run costs what its case does. A run must end by itself within a time limit, with status 0 and nothing on stderr;
 * status 77 skips its case. The result is TAP, a line for each case.
 */
#ifndef SG_TEST_DRIVER_H
#define SG_TEST_DRIVER_H

struct test_case {
  const char *name;
  void (*run)(void); /* may exit */
};

extern unsigned test_seed; /* the number of the run, from 0 */

/* The cases that `wanted` names as NAME:RUNS, 60 times as often with SG_SOAK=1. A case that returns exits with
 * `result`. 0 if each run was right, 2 for a name that no case has. */
int run_cases(const struct test_case *cases, int count, int (*result)(void), char *const *wanted, int wanted_count,
              double seconds);

#endif
