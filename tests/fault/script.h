/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the public API, in which every call may fail: it must never crash, hang or return a wrong result. */
#ifndef SG_TEST_SCRIPT_H
#define SG_TEST_SCRIPT_H

/** The outcome of a pass. */
struct script_outcome {
  int failed;             /**< Calls and jobs that reported out of memory, or depended on one that did. */
  int wrong;              /**< Statuses other than that, and wrong results. */
  char last_failure[300]; /**< Message of one failure. */
};

/** Runs the pass on a device; prints each wrong answer. Everything is released before it returns. */
struct script_outcome run_script(const char *device);

#endif
