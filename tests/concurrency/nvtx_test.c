/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs, calls and waits are ranges of NVTX when a profiler listens: NVTX_INJECTION64_PATH names nvtx_injection. Without
 * it, none. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>

#define REQUIRE(condition)                                            \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      return EXIT_FAILURE;                                            \
    }                                                                 \
  } while (0)

enum { JOBS = 5, SIZE = 300 };

int main(int argc, char **argv) {
  const int listens = argc > 2;
  sg_context_options where = SG_CONTEXT_OPTIONS_INIT;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  sg_submit submit = SG_SUBMIT_INIT;
  sg_context *context = NULL;
  sg_job *jobs[JOBS];
  static float a[SIZE * SIZE], c[JOBS][SIZE * SIZE];
  void *profiler;
  atomic_int *pushed, *popped, *started, *ended, *labelled;
  int i;
  where.device = argc > 1 ? argv[1] : "cpu";
  REQUIRE(sg_context_create(&where, &context) == SG_STATUS_OK);
  desc.a.data = desc.b.data = a;
  desc.a.rows = desc.a.cols = desc.b.rows = desc.b.cols = desc.c.rows = desc.c.cols = SIZE;
  submit.label = "by hand";
  for (i = 0; i < JOBS; ++i) {
    desc.c.data = c[i];
    REQUIRE(sg_gemm_async(context, &desc, i == 0 ? &submit : NULL, &jobs[i]) == SG_STATUS_OK);
  }
  for (i = 0; i < JOBS; ++i) REQUIRE(sg_job_wait(jobs[i], SG_FOREVER, NULL) == SG_STATUS_OK);
  for (i = 0; i < JOBS; ++i) sg_job_release(jobs[i]);
  REQUIRE(sg_context_synchronize(context, SG_FOREVER) == SG_STATUS_OK);
  sg_context_release(context);
  if (!listens) return EXIT_SUCCESS;
  profiler = dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(profiler != NULL); /* the library has loaded it */
  pushed = (atomic_int *)dlsym(profiler, "nvtx_pushed");
  popped = (atomic_int *)dlsym(profiler, "nvtx_popped");
  started = (atomic_int *)dlsym(profiler, "nvtx_started");
  ended = (atomic_int *)dlsym(profiler, "nvtx_ended");
  labelled = (atomic_int *)dlsym(profiler, "nvtx_labelled");
  REQUIRE(*started == JOBS);
  REQUIRE(*ended == JOBS);
  REQUIRE(*labelled == 1);
  REQUIRE(*pushed >= 2 * JOBS); /* a submission and a wait each */
  REQUIRE(*pushed == *popped);
  return EXIT_SUCCESS;
}
