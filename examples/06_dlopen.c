/* SPDX-License-Identifier: Apache-2.0 */
/* The library without its header and without linking it, for languages that can only dlopen. Handles are
 * pointers, statuses and enumerators are ints, 0 is success. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int create_fn(const void *options, void **out_context);
typedef int release_fn(void *handle);
typedef int wait_fn(void *job, int64_t timeout_ns, int *out_status);
typedef int dgemm_fn(void *context, int layout, int op_a, int op_b, int64_t m, int64_t n, int64_t k, double alpha,
                     const double *a, int64_t lda, const double *b, int64_t ldb, double beta, double *c, int64_t ldc,
                     const void *submit, void **out_job);
typedef const char *message_fn(void);

static void *library;

/* C has no cast from an object pointer to a function pointer; POSIX allows copying one. */
static void find(const char *name, void *function) {
  void *symbol = dlsym(library, name);
  if (!symbol) {
    fprintf(stderr, "%s\n", dlerror());
    exit(EXIT_FAILURE);
  }
  memcpy(function, &symbol, sizeof symbol);
}

int main(void) {
  const double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}; /* column major */
  double c[4];
  void *context, *job;
  create_fn *context_create;
  release_fn *context_release, *job_release;
  wait_fn *job_wait;
  dgemm_fn *dgemm_async;
  message_fn *message;

  library = dlopen("libstreamgemm.so.0", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return EXIT_FAILURE;
  }
  find("sg_context_create", &context_create);
  find("sg_context_release", &context_release);
  find("sg_dgemm_async", &dgemm_async);
  find("sg_job_wait", &job_wait);
  find("sg_job_release", &job_release);
  find("sg_last_error_message", &message);

  if (context_create(NULL, &context) != 0 ||
      dgemm_async(context, 1, 0, 0, 2, 2, 2, 1.0, a, 2, b, 2, 0.0, c, 2, NULL, &job) != 0 ||
      job_wait(job, -1, NULL) != 0) {
    fprintf(stderr, "%s\n", message());
    return EXIT_FAILURE;
  }
  printf("%g %g\n%g %g\n", c[0], c[2], c[1], c[3]);
  job_release(job);
  context_release(context);
  return !(c[0] == 23 && c[1] == 34 && c[2] == 31 && c[3] == 46);
}
