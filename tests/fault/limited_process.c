/* SPDX-License-Identifier: Apache-2.0 */
/* GEMMs on a device, in a process with externally set limits: limited_process DEVICE. Prints how far it came. A failure
 * because of the limits must be SG_STATUS_OUT_OF_MEMORY; any other failure exits with status 1. */
#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>

enum { N = 200, TIMES = 8 };

static int ends_as(const char *what, sg_status status) {
  printf("%s: %s\n", what, sg_status_name(status));
  fflush(stdout);
  if (status == SG_STATUS_OUT_OF_MEMORY) return 0;
  fprintf(stderr, "%s: %s: %s\n", what, sg_status_name(status), sg_last_error_message());
  return 1;
}

int main(int count, char **arguments) {
  const sg_dtype types[] = {SG_DTYPE_F64, SG_DTYPE_F32, SG_DTYPE_C64, SG_DTYPE_BF16};
  static double a[2 * N * N], b[2 * N * N], c[TIMES][2 * N * N];
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_context *context = NULL;
  sg_status status;
  size_t type;
  int i;
  if (count != 2) return 2;
  options.device = arguments[1];
  status = sg_context_create(&options, &context);
  if (status != SG_STATUS_OK) return ends_as("create", status);
  for (type = 0; type < sizeof types / sizeof *types; ++type) {
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    sg_job *jobs[TIMES] = {NULL};
    sg_matrix square = {NULL, N, N, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
    square.dtype = types[type];
    desc.a = desc.b = desc.c = square;
    desc.a.data = a;
    desc.b.data = b;
    for (i = 0; i < TIMES && status == SG_STATUS_OK; ++i) {
      desc.c.data = c[i];
      status = sg_gemm_async(context, &desc, NULL, &jobs[i]);
    }
    if (status == SG_STATUS_OK) status = sg_job_wait_all(jobs, TIMES, SG_FOREVER, NULL);
    for (i = 0; i < TIMES; ++i) sg_job_release(jobs[i]);
    if (status != SG_STATUS_OK) return ends_as("gemm", status);
  }
  sg_context_release(context);
  printf("done\n");
  return 0;
}
