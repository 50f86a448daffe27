/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>

enum { GEMMS = 1000, N = 32, AT_A_TIME = 64 };

static float a[GEMMS][N][N], b[N][N], c[GEMMS][N][N];

static void check(sg_status status, const char *message) {
  if (status == SG_STATUS_OK) return;
  fprintf(stderr, "%s: %s\n", sg_status_name(status), message);
  exit(EXIT_FAILURE);
}

static void check_result(uint64_t g) {
  for (int i = 0; i < N * N; ++i) {
    float sum = 0;
    for (int k = 0; k < N; ++k) sum += a[g][i / N][k] * b[k][i % N];
    check(c[g][i / N][i % N] == sum ? SG_STATUS_OK : SG_STATUS_INTERNAL, "a wrong result");
  }
}

int main(void) {
  sg_context *context;
  sg_queue *queue;
  check(sg_context_create(NULL, &context), sg_last_error_message());
  check(sg_queue_create(context, &queue), sg_last_error_message());
  for (int i = 0; i < N * N; ++i) b[i / N][i % N] = (float)(i % 7 - 3);
  for (int i = 0; i < GEMMS * N * N; ++i) a[i / (N * N)][i / N % N][i % N] = (float)(i % 11 - 5);
  for (int g = 0; g < GEMMS; ++g) {
    sg_submit submit = SG_SUBMIT_INIT;
    submit.queue = queue;
    submit.tag = (uint64_t)g;
    check(sg_sgemm_async(context, SG_LAYOUT_ROW_MAJOR, SG_TRANSPOSE_N, SG_TRANSPOSE_N, N, N, N, 1, a[g][0], N, b[0], N,
                         0, c[g][0], N, &submit, NULL),
          sg_last_error_message());
  }
  for (int32_t count, left = GEMMS; left > 0; left -= count) {
    sg_completion done[AT_A_TIME];
    check(sg_queue_next_batch(queue, done, AT_A_TIME, SG_FOREVER, &count), sg_last_error_message());
    for (int32_t i = 0; i < count; ++i) {
      check(done[i].status, done[i].message);
      check_result(done[i].tag);
    }
  }
  sg_queue_release(queue);
  sg_context_release(context);
  return 0;
}
