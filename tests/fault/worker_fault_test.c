/* SPDX-License-Identifier: Apache-2.0 */
/* A fault on a library thread reaches the program's own handler: an access to unreadable memory makes this test
 * succeed. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <streamgemm/streamgemm.h>
#include <sys/mman.h>
#include <unistd.h>

static pid_t main_thread;

static void on_fault(int number) {
  (void)number;
  _exit(gettid() == main_thread ? 2 : 0);
}

int main(int count, char **arguments) {
  enum { n = 64 };
  static float b[n * n], c[n * n];
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  sg_context *context = NULL;
  sg_job *job = NULL;
  const sg_matrix shape = {NULL, n, n, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  main_thread = gettid();
  signal(SIGSEGV, on_fault);
  desc.a = desc.b = desc.c = shape;
  desc.a.data = mmap(NULL, sizeof b, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  desc.b.data = b;
  desc.c.data = c;
  options.device = count > 1 ? arguments[1] : "cpu";
  if (sg_context_create(&options, &context) || sg_gemm_async(context, &desc, NULL, &job)) {
    fprintf(stderr, "%s\n", sg_last_error_message());
    return 3;
  }
  while (sg_job_query(job, NULL) == SG_STATUS_NOT_READY) usleep(1000); /* a waiting thread may do the work itself */
  fprintf(stderr, "the GEMM on unreadable memory has completed\n");
  return 1;
}
