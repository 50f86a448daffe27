/* SPDX-License-Identifier: Apache-2.0 */
/* Status checks of the examples: continue, or print the failure and stop. */
#ifndef EXAMPLES_CHECK_H
#define EXAMPLES_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>

static inline void check(sg_status status, const char *attempt) {
  if (status == SG_STATUS_OK) return;
  fprintf(stderr, "%s: %s: %s\n", attempt, sg_status_name(status), sg_last_error_message());
  exit(EXIT_FAILURE);
}

/* A context on the device named by the program's only argument; "auto" without one. */
static inline sg_context *open_context(int argc, char **argv) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_context *context;
  if (argc > 1) options.device = argv[1];
  check(sg_context_create(&options, &context), "sg_context_create");
  return context;
}

static inline void expect(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "wrong result: %s\n", what);
  exit(EXIT_FAILURE);
}

#endif
