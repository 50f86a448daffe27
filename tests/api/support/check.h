/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for tests written in C: a failed check prints where and why, and fails the program at its end. */
#ifndef SG_TEST_CHECK_H
#define SG_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>

static int check_failures;

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      ++check_failures;                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                         \
  } while (0)

/* The status that a call must return. */
#define CHECK_STATUS(expected, call)                                                              \
  do {                                                                                            \
    const sg_status check_wanted = (expected), check_seen = (call);                               \
    if (check_seen != check_wanted) {                                                             \
      ++check_failures;                                                                           \
      fprintf(stderr, "%s:%d: %s\n  answered %s, not %s (%s)\n", __FILE__, __LINE__, #call,       \
              sg_status_name(check_seen), sg_status_name(check_wanted), sg_last_error_message()); \
    }                                                                                             \
  } while (0)

/* For conditions that the rest of the test depends on. */
#define REQUIRE_OK(call)                                                                             \
  do {                                                                                               \
    const sg_status check_seen = (call);                                                             \
    if (check_seen != SG_STATUS_OK) {                                                                \
      fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call, sg_status_name(check_seen), \
              sg_last_error_message());                                                              \
      exit(1);                                                                                       \
    }                                                                                                \
  } while (0)

static inline int check_result(void) {
  if (check_failures) fprintf(stderr, "%d checks failed\n", check_failures);
  return check_failures ? 1 : 0;
}

#endif
