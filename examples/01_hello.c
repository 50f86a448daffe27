/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <streamgemm/streamgemm.h>

int main(void) {
  const float a[2][3] = {{1, 2, 3}, {4, 5, 6}}, b[3][2] = {{7, 8}, {9, 10}, {11, 12}};
  float c[2][2];
  sg_context *context = NULL;
  sg_job *job = NULL;
  sg_status status = sg_context_create(NULL, &context); /* the GPU if there is one, else the CPU */
  if (status == SG_STATUS_OK)                           /* returns at once: the job computes c = a * b */
    status = sg_sgemm_async(context, SG_LAYOUT_ROW_MAJOR, SG_TRANSPOSE_N, SG_TRANSPOSE_N, 2, 2, 3, 1.0f, &a[0][0], 3,
                            &b[0][0], 2, 0.0f, &c[0][0], 2, NULL, &job);
  if (status == SG_STATUS_OK) status = sg_job_wait(job, SG_FOREVER, NULL);
  if (status == SG_STATUS_OK)
    printf("%g %g\n%g %g\n", c[0][0], c[0][1], c[1][0], c[1][1]);
  else
    fprintf(stderr, "%s: %s\n", sg_status_name(status), sg_last_error_message());
  sg_job_release(job);
  sg_context_release(context);
  return status != SG_STATUS_OK;
}
