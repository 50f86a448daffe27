/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own OpenBLAS keeps its number of threads: before, during and after a context. */
#include <dlfcn.h>
#include <stdlib.h>

#include "support/check.h"

enum { N = 300 };

int main(void) {
  void *const openblas = dlopen("libopenblas.so.0", RTLD_NOW);
  int (*threads)(void);
  void (*set_threads)(int);
  double *const a = calloc(N * N, sizeof *a), *const c = calloc(N * N, sizeof *c);
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_context *context = NULL;
  int i;
  if (!openblas) return 77;
  *(void **)&threads = dlsym(openblas, "openblas_get_num_threads");
  *(void **)&set_threads = dlsym(openblas, "openblas_set_num_threads");
  if (!threads || !set_threads) return 77;
  set_threads(2);
  options.device = "cpu";
  REQUIRE_OK(sg_context_create(&options, &context));
  CHECK(threads() == 2);
  for (i = 0; i < 20; ++i)
    REQUIRE_OK(sg_dgemm_async(context, SG_LAYOUT_ROW_MAJOR, SG_TRANSPOSE_N, SG_TRANSPOSE_N, N, N, N, 1.0, a, N, a, N,
                              0.0, c, N, NULL, NULL));
  REQUIRE_OK(sg_context_synchronize(context, SG_FOREVER));
  CHECK(threads() == 2);
  set_threads(3); /* a number set meanwhile stays, too */
  REQUIRE_OK(sg_dgemm_async(context, SG_LAYOUT_ROW_MAJOR, SG_TRANSPOSE_N, SG_TRANSPOSE_N, N, N, N, 1.0, a, N, a, N, 0.0,
                            c, N, NULL, NULL));
  REQUIRE_OK(sg_context_synchronize(context, SG_FOREVER));
  CHECK(threads() == 3);
  sg_context_release(context);
  CHECK(threads() == 3);
  free(a);
  free(c);
  return check_result();
}
