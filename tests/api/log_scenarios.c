/* SPDX-License-Identifier: Apache-2.0 */
/* Run by log_test.py with SG_LOG: each mode provokes messages of one area, and prints results to standard output. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/gemm_plan.h"

#define N 192

static double a[N * N], b[N * N], c[N * N];

static void fail(const char *what) {
  printf("failed: %s: %s\n", what, sg_last_error_message());
  exit(1);
}
#define OK(call) ((call) == SG_STATUS_OK ? (void)0 : fail(#call))

static sg_context *open_device(const char *device) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_context *context = NULL;
  options.device = device;
  OK(sg_context_create(&options, &context));
  return context;
}

static sg_gemm_desc make_gemm(double *to, int64_t n) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a.data = a;
  desc.b.data = b;
  desc.c.data = to;
  desc.a.rows = desc.a.cols = desc.b.rows = desc.b.cols = desc.c.rows = desc.c.cols = n;
  desc.a.dtype = desc.b.dtype = desc.c.dtype = SG_DTYPE_F64;
  return desc;
}

/* C as a sum over all elements, which any changed bit would change. */
static void print_result(void) {
  unsigned long long sum = 0, bits;
  int i;
  for (i = 0; i < N * N; ++i) {
    memcpy(&bits, &c[i], sizeof bits);
    sum = sum * 31 + bits;
  }
  printf("result %llx\n", sum);
}

static void multiply(const char *device, const char *label) {
  sg_context *const context = open_device(device);
  const sg_gemm_desc desc = make_gemm(c, N);
  sg_submit submit = SG_SUBMIT_INIT;
  submit.label = label;
  OK(sg_gemm(context, &desc, &submit));
  print_result();
  OK(sg_context_release(context));
}

static const char one[] = "sim:h200?fail-launch=1", second[] = "sim:h200x2?d1.fail-launch=1";

/* The first GEMM fails: it belongs to the job with that label. On several devices: on those whose number it is. */
static void failing(const char *device, int32_t devices, const char *label) {
  sg_context *const context = open_device(device);
  const sg_gemm_desc desc = make_gemm(c, N);
  sg_submit submit = SG_SUBMIT_INIT;
  sg_plan_options plan = SG_PLAN_OPTIONS_INIT;
  plan.devices = devices == 1 ? 2 : 0;
  plan.device_count = devices;
  submit.label = label;
  if (devices > 0) submit.plan = &plan;
  if (sg_gemm(context, &desc, &submit) == SG_STATUS_OK) fail("the GEMM did not fail");
  OK(sg_context_release(context));
}

static void cancelled(void) {
  sg_context *const context = open_device("sim:h200");
  const sg_gemm_desc desc = make_gemm(c, N);
  sg_submit submit = SG_SUBMIT_INIT;
  sg_job *job = NULL;
  submit.timeout_ns = 1;
  submit.label = "late";
  OK(sg_gemm_async(context, &desc, &submit, &job));
  if (sg_job_wait(job, SG_FOREVER, NULL) != SG_STATUS_DEADLINE_EXCEEDED) fail("the deadline did not pass");
  OK(sg_job_release(job));
  OK(sg_context_release(context));
}

/* A graph whose GEMM is in host memory is no command of a device graph. */
static void replayed(const char *device) {
  sg_context *const context = open_device(device);
  const sg_gemm_desc desc = make_gemm(c, N);
  sg_submit record = SG_SUBMIT_INIT;
  sg_graph *graph = NULL;
  OK(sg_graph_create(context, &graph));
  record.graph = graph;
  OK(sg_gemm_async(context, &desc, &record, NULL));
  OK(sg_graph_run_async(graph, NULL, NULL));
  OK(sg_context_synchronize(context, SG_FOREVER));
  print_result();
  OK(sg_graph_release(graph));
  OK(sg_context_release(context));
}

static double *device_memory(sg_context *context, const double *from, uint64_t bytes, sg_buffer **buffer) {
  void *address = NULL;
  OK(sg_buffer_create(context, bytes, NULL, buffer));
  OK(sg_buffer_data(*buffer, &address));
  OK(sg_copy(context, address, from, bytes, NULL));
  return (double *)address;
}

/* Small GEMMs queue behind a large one and go out as one call, which the device refuses; it accepts each by itself. */
static void batched(void) {
  enum { SMALL = 8, COUNT = 8, LARGE = 600 };
  static double large[LARGE * LARGE];
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_gemm_desc first = make_gemm(NULL, LARGE), small = make_gemm(NULL, SMALL);
  sg_context *context = NULL;
  sg_buffer *buffers[5];
  sg_plan *plan = NULL;
  double *results;
  int i;
  options.device = "sim:h200?refuse-launch=2";
  options.commands_in_flight = 1;
  OK(sg_context_create(&options, &context));
  first.a.data = first.b.data = device_memory(context, large, sizeof large, &buffers[0]);
  first.c.data = device_memory(context, large, sizeof large, &buffers[1]);
  small.a.data = device_memory(context, a, sizeof a, &buffers[2]);
  small.b.data = device_memory(context, b, sizeof b, &buffers[3]);
  results = device_memory(context, a, sizeof a, &buffers[4]);
  small.c.data = results;
  /* The shape is planned beforehand, so that all of them are queued before the large GEMM completes. */
  OK(create_gemm_plan(context, &small, NULL, &plan));
  OK(sg_gemm_async(context, &first, NULL, NULL));
  for (i = 0; i < COUNT; ++i) {
    small.c.data = results + i * SMALL * SMALL;
    OK(sg_gemm_async(context, &small, NULL, NULL));
  }
  OK(sg_context_synchronize(context, SG_FOREVER));
  OK(sg_copy(context, c, results, sizeof c, NULL));
  print_result();
  OK(sg_plan_release(plan));
  for (i = 0; i < 5; ++i) OK(sg_buffer_release(buffers[i]));
  OK(sg_context_release(context));
}

static void *plan_shapes(void *first) {
  sg_context *const context = open_device("sim:h200");
  int64_t n;
  for (n = *(int *)first; n < 100; n += 4) {
    const sg_gemm_desc desc = make_gemm(NULL, n);
    sg_plan *plan = NULL;
    OK(create_gemm_plan(context, &desc, NULL, &plan));
    OK(sg_plan_release(plan));
  }
  OK(sg_context_release(context));
  return NULL;
}

static void beside_each_other(void) {
  pthread_t threads[4];
  int first[4] = {1, 2, 3, 4}, i;
  for (i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, plan_shapes, &first[i]);
  for (i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
}

static void forked(void) {
  int status = 0;
  pid_t child;
  multiply("sim:h200", "parent");
  fflush(stdout);
  child = fork();
  if (child == 0) {
    failing(one, 0, "child");
    exit(0);
  }
  if (waitpid(child, &status, 0) != child || status != 0) fail("the child");
}

/* The process returns from main with work in flight, some of which then fails. */
static void exiting(void) {
  sg_context *const context = open_device("sim:h200");
  static double to[200][N * N];
  int i;
  for (i = 0; i < 200; ++i) {
    const sg_gemm_desc desc = make_gemm(to[i], N);
    OK(sg_gemm_async(context, &desc, NULL, NULL));
  }
}

/* A file of the program has the number of the closed standard error. */
static void closed(const char *path) {
  close(STDERR_FILENO);
  multiply("sim:h200", NULL);
  if (open(path, O_CREAT | O_WRONLY, 0600) != STDERR_FILENO) fail("the descriptor");
  failing(one, 0, "late");
}

/* A batch of one row through a layer whose weights are streamed although they would fit. */
static void streamed(void) {
  sg_context *const context = open_device("sim:h200");
  const sg_weight weights = {a, sizeof a};
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  sg_stage stage = SG_STAGE_INIT;
  sg_submit submit = SG_SUBMIT_INIT;
  sg_gemm_desc gemm = make_gemm(c, N);
  sg_pipeline *pipeline = NULL;
  options.input_bytes = desc.output_bytes = N * sizeof(double);
  desc.weights = &weights;
  desc.weight_count = 1;
  desc.place = SG_WEIGHTS_STREAMED;
  OK(sg_pipeline_create(context, &options, &pipeline));
  OK(sg_pipeline_add_stage(pipeline, &desc, &stage));
  gemm.a.data = (void *)stage.input;
  gemm.b.data = stage.weights[0];
  gemm.c.data = stage.output;
  gemm.a.rows = gemm.c.rows = 1;
  submit.graph = stage.graph;
  OK(sg_gemm_async(context, &gemm, &submit, NULL));
  OK(sg_pipeline_push(pipeline, b, c, NULL));
  print_result();
  OK(sg_pipeline_release(pipeline));
  OK(sg_context_release(context));
}

/* Twice windows of 7 x 1 pixels. */
static void convolved(const char *device) {
  sg_context *context = open_device(device);
  sg_conv2d_desc desc = SG_CONV2D_DESC_INIT;
  float x[64], w[7], y[16];
  int i;
  for (i = 0; i < 64; ++i) x[i] = 1;
  for (i = 0; i < 7; ++i) w[i] = 1;
  desc.x.data = x;
  desc.y.data = y;
  desc.w = w;
  desc.channels = desc.out_channels = 1;
  desc.height = desc.width = 8;
  desc.windows.kernel_h = 7;
  for (i = 0; i < 2; ++i) {
    OK(sg_conv2d(context, &desc, NULL));
    printf("%g\n", y[15]);
  }
  OK(sg_context_release(context));
}

int main(int argc, char **argv) {
  const char *const mode = argc > 1 ? argv[1] : "";
  int i;
  for (i = 0; i < N * N; ++i) {
    a[i] = 1.0 / (1 + i % 7);
    b[i] = 1.0 / (1 + i % 11);
  }
  if (strcmp(mode, "plan") == 0)
    multiply("sim:h200", NULL);
  else if (strcmp(mode, "cpu") == 0)
    multiply("cpu", NULL);
  else if (strcmp(mode, "memory") == 0)
    multiply("sim:h200?memory=4MiB&taken=3600KiB", "large \033[31m\n");
  else if (strcmp(mode, "failing") == 0)
    failing(one, 0, argc > 2 ? argv[2] : NULL);
  else if (strcmp(mode, "failing_on_second") == 0)
    failing(second, 1, "alone"), failing(second, 2, "together");
  else if (strcmp(mode, "deadline") == 0)
    cancelled();
  else if (strcmp(mode, "graph") == 0)
    replayed(argc > 2 ? argv[2] : "cpu");
  else if (strcmp(mode, "conv") == 0)
    convolved(argc > 2 ? argv[2] : "cpu");
  else if (strcmp(mode, "batch") == 0)
    batched();
  else if (strcmp(mode, "streamed") == 0)
    streamed();
  else if (strcmp(mode, "threads") == 0)
    beside_each_other();
  else if (strcmp(mode, "fork") == 0)
    forked();
  else if (strcmp(mode, "exit") == 0)
    exiting();
  else if (strcmp(mode, "closed") == 0)
    closed(argv[2]);
  else
    return 2;
  return 0;
}
