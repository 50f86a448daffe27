/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of release 0.1: compiled against that release's headers, run with today's library. It touches every object
 * and every struct of them, and must neither be changed nor fail for as long as the soname is libstreamgemm.so.0.
 */
#include <stdio.h>
#include <streamgemm/streamgemm.h>
#include <string.h>

#if SG_VERSION != 1000
#error these are not the headers of release 0.1
#endif

static int failures;
static void expect(int good, const char *what) {
  if (good) return;
  ++failures;
  fprintf(stderr, "%s (%s)\n", what, sg_last_error_message());
}
#define OK(call) expect((call) == SG_STATUS_OK, #call)

static void completed(sg_job *job, sg_status status, void *user) {
  (void)job;
  *(sg_status *)user = status;
}
static void happened(sg_event *event, sg_status status, void *user) {
  (void)event;
  *(sg_status *)user = status;
}

static void on_device(const char *device) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_device_info info = SG_DEVICE_INFO_INIT;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  sg_submit submit = SG_SUBMIT_INIT;
  sg_plan_options planning = SG_PLAN_OPTIONS_INIT;
  sg_plan_prediction prediction = SG_PLAN_PREDICTION_INIT;
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  sg_completion completion;
  sg_context *context = NULL;
  sg_stream *stream = NULL;
  sg_event *start = NULL, *end = NULL;
  sg_buffer *buffer = NULL;
  sg_queue *queue = NULL;
  sg_plan *plan = NULL;
  sg_job *jobs[3] = {NULL, NULL, NULL};
  sg_status from_job = SG_STATUS_NOT_READY, from_event = SG_STATUS_NOT_READY;
  double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, c[4] = {0}, seconds = -1;
  float fa = 3, fb = 4, fc = 0;
  char text[4000];
  int32_t count = 0, index = -1, fd = -1;
  uint64_t bytes = 0;
  void *data = NULL, *pinned = NULL;

  options.device = device;
  OK(sg_context_create(&options, &context));
  OK(sg_context_device(context, &info));
  expect(strcmp(info.name, device) == 0, "the device's name");
  OK(sg_stream_acquire(context, 1, &stream));
  OK(sg_event_create(context, &start));
  OK(sg_event_create(context, &end));
  OK(sg_queue_create(context, &queue));
  OK(sg_queue_fd(queue, &fd));
  OK(sg_host_alloc(context, sizeof a, &pinned));
  OK(sg_buffer_create(context, sizeof a, &buffer));
  OK(sg_buffer_data(buffer, &data));
  OK(sg_buffer_size(buffer, &bytes));
  expect(bytes == sizeof a, "the buffer's size");

  OK(sg_event_record(start, stream));
  submit.stream = stream;
  OK(sg_copy_async(context, data, a, sizeof a, &submit, &jobs[0]));
  OK(sg_copy_2d_async(context, pinned, 24, data, 24, 24, 2, &submit, &jobs[1]));
  desc.a.data = pinned;
  desc.a.rows = 2;
  desc.a.cols = 3;
  desc.b.data = b;
  desc.b.rows = 3;
  desc.b.cols = 2;
  desc.c.data = c;
  desc.c.rows = desc.c.cols = 2;
  desc.a.dtype = desc.b.dtype = desc.c.dtype = SG_DTYPE_F64;
  desc.alpha.re = 10;
  planning.split = SG_SPLIT_K;
  planning.parts = 2;
  submit.queue = queue;
  submit.tag = 77;
  submit.plan = &planning;
  OK(sg_gemm_async(context, &desc, &submit, &jobs[2]));
  OK(sg_job_on_complete(jobs[2], completed, &from_job));
  OK(sg_event_record(end, stream));
  OK(sg_event_on_complete(end, happened, &from_event));
  OK(sg_job_wait_all(jobs, 3, SG_FOREVER));
  OK(sg_job_wait_any(jobs, 3, SG_FOREVER, &index));
  expect(index == 0, "the lowest of those that ended");
  OK(sg_queue_next_batch(queue, &completion, 1, SG_FOREVER, &count));
  expect(count == 1 && completion.tag == 77 && completion.status == SG_STATUS_OK, "the completion");
  expect(c[0] == 40 && c[1] == 50 && c[2] == 100 && c[3] == 110, "the product");
  OK(sg_event_wait(end, SG_FOREVER));
  OK(sg_event_elapsed(start, end, &seconds));
  expect(seconds > 0, "the time between the events");
  OK(sg_job_stats(jobs[2], &statistics));
  expect(statistics.flops == 24, "the operations of the product");

  OK(sg_plan_create(context, &desc, &planning, &plan));
  OK(sg_plan_predict(plan, &prediction));
  expect(prediction.predicted_seconds > 0, "the prediction");
  OK(sg_plan_describe(plan, SG_PLAN_TEXT, text, sizeof text, NULL));
  OK(sg_plan_run_async(plan, &desc, NULL, NULL));
  OK(sg_gemm(context, &desc, NULL));
  OK(sg_gemm_grouped_async(context, &desc, 1, NULL, NULL));
  OK(sg_sgemm_async(context, SG_LAYOUT_ROW_MAJOR, SG_OP_N, SG_OP_T, 1, 1, 1, 1, &fa, 1, &fb, 1, 0, &fc, 1, NULL, NULL));
  OK(sg_stream_synchronize(stream, SG_FOREVER));
  OK(sg_context_synchronize(context));
  expect(fc == 12 && c[3] == 110, "the later products");
  /* Callbacks run one at a time and in order of completion: a last one tells that all before it have returned. */
  while (from_job == SG_STATUS_NOT_READY || from_event == SG_STATUS_NOT_READY)
    (void)sg_queue_next_batch(queue, &completion, 1, 1000000, &count);
  expect(from_job == SG_STATUS_OK && from_event == SG_STATUS_OK, "the callbacks");

  OK(sg_queue_close(queue));
  OK(sg_host_free(context, pinned));
  OK(sg_context_release(context));
  OK(sg_plan_release(plan));
  OK(sg_job_release(jobs[0]));
  OK(sg_job_release(jobs[1]));
  OK(sg_job_release(jobs[2]));
  OK(sg_queue_release(queue));
  OK(sg_buffer_release(buffer));
  OK(sg_event_release(start));
  OK(sg_event_release(end));
  OK(sg_stream_release(stream));
}

int main(void) {
  on_device("cpu");
  on_device("sim:h200");
  return failures ? 1 : 0;
}
