/* SPDX-License-Identifier: Apache-2.0 */
/* Many jobs at once: order that follows from the data, explicit order, and a completion queue. */
#include "check.h"

enum { size = 64, jobs = 8 };

static float a[size * size], power[jobs + 1][size * size];

static sg_status multiply(sg_context *context, const float *x, const float *y, float *z, const sg_submit *submit,
                          sg_job **job) {
  return sg_sgemm_async(context, SG_LAYOUT_ROW_MAJOR, SG_TRANSPOSE_N, SG_TRANSPOSE_N, size, size, size, 1.0f, x, size,
                        y, size, 0.0f, z, size, submit, job);
}

int main(int argc, char **argv) {
  sg_context *context = open_context(argc, argv);
  sg_queue *queue;
  int i;

  /* A cyclic shift: its eighth power shifts by eight. Powers depend on each other, so the jobs run one after another;
   * the library derives that from their operands. Only the last job is waited for. */
  for (i = 0; i < size; ++i) a[i * size + (i + 1) % size] = power[0][i * size + i] = 1.0f;
  check(sg_queue_create(context, NULL, &queue), "sg_queue_create");
  for (i = 0; i < jobs; ++i) {
    sg_submit submit = SG_SUBMIT_INIT;
    submit.queue = queue;
    submit.tag = (uint64_t)i + 1;
    check(multiply(context, power[i], a, power[i + 1], &submit, NULL), "sg_sgemm_async");
  }

  /* The queue returns each job as it completes. An event loop would watch sg_queue_fd instead of blocking here. */
  for (i = 0; i < jobs;) {
    sg_completion done[jobs];
    int32_t count, j;
    check(sg_queue_next_batch(queue, done, sizeof(sg_completion), jobs, SG_FOREVER, &count), "sg_queue_next_batch");
    for (j = 0; j < count; ++j) {
      check(done[j].status, done[j].message);
      printf("power %d is ready\n", (int)done[j].tag);
    }
    i += count;
  }
  expect(power[jobs][0 * size + jobs] == 1.0f && power[jobs][3 * size + 3 + jobs] == 1.0f, "a^8 shifts by 8");

  /* `after` names jobs to wait for when the data does not order them. */
  {
    sg_job *first, *second;
    sg_submit submit = SG_SUBMIT_INIT;
    check(multiply(context, a, a, power[1], NULL, &first), "sg_sgemm_async");
    submit.after = &first;
    submit.after_count = 1;
    check(multiply(context, a, power[0], power[2], &submit, &second), "sg_sgemm_async");
    check(sg_job_wait(second, SG_FOREVER, NULL), "sg_job_wait");
    expect(sg_job_query(first, NULL) == SG_STATUS_OK, "the job named in `after` completed before");
    sg_job_release(first);
    sg_job_release(second);
  }
  sg_queue_release(queue);
  sg_context_release(context);
  return 0;
}
