/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the public API, every call of which may fail: what it must never do is crash, hang or answer wrongly.
 */
#ifndef SG_TEST_SCRIPT_H
#define SG_TEST_SCRIPT_H

/** How a pass went. */
struct script_outcome {
  int failed;             /**< Calls and jobs that reported out of memory, or depended on one that did. */
  int wrong;              /**< Answers that are neither that nor a right result. */
  char last_failure[300]; /**< Text of one. */
};

/** Runs the pass on a device; prints each wrong answer. Everything is released at its end. */
struct script_outcome run_script(const char *device);

#endif
