/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of release 0.2: compiled against that release's headers, run with today's library. It uses what 0.2 added
 * to 0.1 (frozen_test.c has the rest), and once 0.2 is released it must neither be changed nor fail for as long as the
 * soname is libstreamgemm.so.0.
 */
#include <stdio.h>
#include <streamgemm/streamgemm.h>
#include <string.h>

#if SG_VERSION / 1000 != 2
#error these are not the headers of release 0.2
#endif

static int failures;
static void expect(int good, const char *what) {
  if (good) return;
  ++failures;
  fprintf(stderr, "%s (%s)\n", what, sg_last_error_message());
}
#define OK(call) expect((call) == SG_STATUS_OK, #call)

static void on_device(const char *device) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  sg_axpby_desc sum = SG_AXPBY_DESC_INIT;
  sg_copy_desc copy = SG_COPY_DESC_INIT;
  sg_operation_desc update = SG_OPERATION_DESC_INIT;
  sg_submit submit = SG_SUBMIT_INIT, record = SG_SUBMIT_INIT;
  sg_job_statistics statistics = SG_JOB_STATISTICS_INIT;
  sg_completion completion;
  sg_context *context = NULL;
  sg_stream *stream = NULL, *limited = NULL;
  sg_buffer *buffers[2] = {NULL, NULL};
  sg_queue *queue = NULL;
  sg_graph *graph = NULL;
  sg_job *job = NULL;
  float a[4] = {1, -2, 3, 4}, one[4] = {1, 0, 0, 1}, bias[2] = {1, 1}, c[4] = {0};
  void *data[2] = {NULL, NULL};
  char label[SG_LABEL_SIZE], text[200];
  int32_t count = 0, units = -1, partition = -1;
  uint64_t bytes = 0;

  options.device = device;
  options.job_limit = 100;
  options.when_full = SG_WHEN_FULL_REFUSE;
  OK(sg_context_create(&options, &context));
  OK(sg_context_model(context, text, sizeof text, &bytes));
  expect(bytes > 2, "the model's size");
  OK(sg_stream_create(context, 0, &stream));
  OK(sg_stream_query(stream));
  OK(sg_stream_create_limited(context, 0, 1, &limited));
  OK(sg_stream_compute_units(limited, &units));
  OK(sg_stream_is_partition(limited, &partition));
  expect(units == 1 && partition == 0, "the limit");
  OK(sg_queue_create_shared(&queue));

  desc.a.data = a;
  desc.b.data = one;
  desc.c.data = c;
  desc.a.rows = desc.a.cols = desc.b.rows = desc.b.cols = desc.c.rows = desc.c.cols = 2;
  desc.bias = bias;
  desc.activation = SG_ACTIVATION_RELU;
  submit.stream = stream;
  submit.queue = queue;
  submit.tag = 5;
  submit.deadline_ns = INT64_C(3600000000000);
  submit.label = "the only GEMM";
  submit.flags = SG_SUBMIT_WILL_WAIT;
  OK(sg_gemm_async(context, &desc, &submit, &job));
  OK(sg_job_wait(job, SG_FOREVER));
  OK(sg_job_query(job));
  OK(sg_job_label(job, label, sizeof label));
  expect(strcmp(label, submit.label) == 0, "the label");
  OK(sg_job_get_statistics(job, &statistics));
  expect(statistics.batch_size == 1, "the batch size");
  OK(sg_queue_next_batch(queue, &completion, 1, SG_FOREVER, &count));
  expect(completion.tag == 5 && c[0] == 2 && c[1] == 0 && c[2] == 4 && c[3] == 5, "the result");

  OK(sg_buffer_create(context, sizeof a, &buffers[0]));
  OK(sg_buffer_create(context, sizeof a, &buffers[1]));
  OK(sg_buffer_data(buffers[0], &data[0]));
  OK(sg_buffer_data(buffers[1], &data[1]));
  OK(sg_copy(context, data[0], a, sizeof a, NULL));
  OK(sg_copy(context, data[1], one, sizeof one, NULL));
  sum.a.data = data[0];
  sum.c.data = data[1];
  sum.a.rows = sum.a.cols = sum.c.rows = sum.c.cols = 2;
  sum.alpha.re = 2;
  OK(sg_axpby(context, &sum, NULL));
  OK(sg_graph_create(context, &graph));
  record.graph = graph;
  OK(sg_copy_async(context, c, data[1], sizeof c, &record, NULL));
  OK(sg_graph_submission_count(graph, &count));
  OK(sg_graph_run_async(graph, NULL, NULL));
  OK(sg_context_synchronize(context));
  expect(count == 1 && c[0] == 3 && c[1] == -4 && c[2] == 6 && c[3] == 9, "the graph's copy of the sum");
  update.operation = SG_OPERATION_COPY;
  update.copy = &copy;
  copy.dst = a;
  copy.src = data[1];
  copy.width = sizeof a;
  OK(sg_graph_update(graph, 0, &update));
  OK(sg_graph_run_async(graph, NULL, NULL));
  OK(sg_context_synchronize(context));
  expect(a[0] == 3 && a[1] == -4 && a[2] == 6 && a[3] == 9, "the copy to the updated destination");

  OK(sg_graph_release(graph));
  OK(sg_buffer_release(buffers[0]));
  OK(sg_buffer_release(buffers[1]));
  OK(sg_job_release(job));
  OK(sg_queue_release(queue));
  OK(sg_stream_release(limited));
  OK(sg_stream_release(stream));
  OK(sg_context_release(context));
}

int main(void) {
  on_device("cpu");
  on_device("sim:h200");
  return failures ? 1 : 0;
}
