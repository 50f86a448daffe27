/* SPDX-License-Identifier: Apache-2.0 */
/* A program that loads the library at run time, lets go of it with work in flight, and loads it again.
 * dlopen_test LIBRARY DEVICE [NUMBER-OF-DEVICES], on which the work in flight runs. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>
#include <time.h>

enum { N = 600 };
static volatile double a[N * N], b[N * N], c[N * N];

/* The few functions that this program uses. */
static sg_status (*context_create)(const sg_context_options *, sg_context **);
static sg_status (*context_release)(sg_context *);
static sg_status (*gemm_async)(sg_context *, const sg_gemm_desc *, const sg_submit *, sg_job **);
static sg_status (*gemm)(sg_context *, const sg_gemm_desc *, const sg_submit *);

static void die(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void *load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) die(dlerror());
  *(void **)&context_create = dlsym(library, "sg_context_create");
  *(void **)&context_release = dlsym(library, "sg_context_release");
  *(void **)&gemm_async = dlsym(library, "sg_gemm_async");
  *(void **)&gemm = dlsym(library, "sg_gemm");
  if (!context_create || !context_release || !gemm_async || !gemm) die("a function is not there");
  return library;
}

static sg_gemm_desc make_gemm(int64_t n) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  sg_matrix view = {NULL, 0, 0, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  view.rows = view.cols = n;
  desc.a = desc.b = desc.c = view;
  desc.a.data = (void *)a;
  desc.b.data = (void *)b;
  desc.c.data = (void *)c;
  return desc;
}

/* The children of the large GEMM complete in any order; c is reused only when all have completed. */
static int all_done(void) {
  int i;
  for (i = 0; i < N * N; ++i)
    if (((volatile const double *)c)[i] != N) return 0;
  return 1;
}

int main(int argc, char **argv) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_gemm_desc large = make_gemm(N), small = make_gemm(8);
  sg_context *context = NULL, *other = NULL;
  void *library;
  sg_plan_options spread = SG_PLAN_OPTIONS_INIT;
  sg_submit submit = SG_SUBMIT_INIT;
  int i;
  if (argc < 3) return 2;
  spread.device_count = argc > 3 ? atoi(argv[3]) : 0;
  submit.plan = &spread;
  options.device = argv[2];
  for (i = 0; i < N * N; ++i) a[i] = b[i] = 1;
  library = load(argv[1]);
  if (context_create(&options, &context) != SG_STATUS_OK) die("no context");
  if (gemm_async(context, &large, &submit, NULL) != SG_STATUS_OK) die("no submission");
  if (dlclose(library) != 0) die(dlerror());
  for (i = 0; i < 20000 && !all_done(); ++i) {
    const struct timespec moment = {0, 10000000};
    nanosleep(&moment, NULL);
  }
  if (!all_done()) die("the work in flight did not end");
  library = load(argv[1]);
  if (context_create(&options, &other) != SG_STATUS_OK) die("no second context");
  if (gemm(other, &small, NULL) != SG_STATUS_OK || c[0] != 8) die("no GEMM after loading again");
  if (gemm(context, &small, NULL) != SG_STATUS_OK) die("the handle of before is dead");
  if (context_release(other) != SG_STATUS_OK || context_release(context) != SG_STATUS_OK) die("no release");
  if (dlclose(library) != 0) die(dlerror());
  return 0;
}
