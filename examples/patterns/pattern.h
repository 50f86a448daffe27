/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the patterns: memory, the operations of small networks, and the comparison. A pattern runs the same work in
 * two ways, by the library's own order of jobs and by hand, and each of its parts alone. The ideal is the time of the
 * busiest of what the parts use: copies in, arithmetic, copies out. A simulated device, whose times are virtual, runs
 * GEMMs one after the other; on a GPU those of different streams may run beside each other, and beat it. */
#ifndef EXAMPLES_PATTERN_H
#define EXAMPLES_PATTERN_H

#include <math.h>
#include <string.h>
#include <time.h>

#include "../check.h"

enum { PATTERN_MAX_ARRAYS = 256 };

typedef struct pattern {
  sg_context *context;
  const char *folder; /* for pages; NULL: none */
  int is_virtual;
  sg_buffer *buffers[PATTERN_MAX_ARRAYS];
  void *pinned[PATTERN_MAX_ARRAYS];
  int buffer_count, pinned_count;
} pattern;

/* Arguments: a device; a folder for pages. */
static inline void pattern_open(pattern *p, int argc, char **argv) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  memset(p, 0, sizeof *p);
  options.device = argc > 1 ? argv[1] : "sim:h200";
  options.flags = SG_CONTEXT_CHECK_HAZARDS | SG_CONTEXT_NO_COALESCING;
  p->folder = argc > 2 ? argv[2] : NULL;
  p->is_virtual = strncmp(options.device, "sim:", 4) == 0;
  check(sg_context_create(&options, &p->context), "sg_context_create");
}

static inline void pattern_close(pattern *p) {
  int i;
  for (i = 0; i < p->buffer_count; ++i) sg_buffer_release(p->buffers[i]);
  for (i = 0; i < p->pinned_count; ++i) check(sg_host_free(p->context, p->pinned[i]), "sg_host_free");
  sg_context_release(p->context);
}

/* Pinned memory, and the device's. Both are freed at the end. */
static inline float *on_host(pattern *p, size_t count) {
  void *data;
  expect(p->pinned_count < PATTERN_MAX_ARRAYS, "the number of arrays");
  check(sg_host_alloc(p->context, count * sizeof(float), &data), "sg_host_alloc");
  return p->pinned[p->pinned_count++] = data;
}

static inline float *on_device(pattern *p, size_t count) {
  void *data;
  expect(p->buffer_count < PATTERN_MAX_ARRAYS, "the number of arrays");
  check(sg_buffer_create(p->context, count * sizeof(float), &p->buffers[p->buffer_count]), "sg_buffer_create");
  check(sg_buffer_data(p->buffers[p->buffer_count++], &data), "sg_buffer_data");
  return data;
}

/* Numbers from -1 to 1 that a seed decides. */
static inline void fill(float *to, size_t count, unsigned seed) {
  size_t i;
  for (i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    to[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
  }
}

static inline float *filled_host(pattern *p, size_t count, unsigned seed) {
  float *const made = on_host(p, count);
  fill(made, count, seed);
  return made;
}

static inline void copy(const pattern *p, void *to, const void *from, size_t count, const sg_submit *submit) {
  check(sg_copy_async(p->context, to, from, count * sizeof(float), submit, NULL), "sg_copy_async");
}

/* A device array with the values of a host array. */
static inline float *placed(pattern *p, const float *values, size_t count) {
  float *const made = on_device(p, count);
  check(sg_copy(p->context, made, values, count * sizeof(float), NULL), "sg_copy");
  return made;
}

static inline sg_matrix matrix(const float *data, int64_t rows, int64_t cols) {
  const sg_matrix made = {(void *)data, rows, cols, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  return made;
}

/* y = relu(x w), row major: x is rows x in, w is in x out. */
static inline void layer(const pattern *p, const float *x, const float *w, float *y, int64_t rows, int64_t in,
                         int64_t out, const sg_submit *submit) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = matrix(x, rows, in);
  desc.b = matrix(w, in, out);
  desc.c = matrix(y, rows, out);
  desc.activation = SG_ACTIVATION_RELU;
  check(sg_gemm_async(p->context, &desc, submit, NULL), "sg_gemm_async");
}

/* A step of the linear model y = x w towards the targets t: w -= rate x^T (x w - t). The error, rows x out, is scratch.
 */
static inline void train(const pattern *p, const float *x, const float *t, float *w, float *error, int64_t rows,
                         int64_t in, int64_t out, double rate, const sg_submit *submit) {
  sg_gemm_desc forward = SG_GEMM_DESC_INIT, backward = SG_GEMM_DESC_INIT;
  sg_axpby_desc minus = SG_AXPBY_DESC_INIT;
  forward.a = backward.a = matrix(x, rows, in);
  forward.b = backward.c = matrix(w, in, out);
  forward.c = backward.b = minus.c = matrix(error, rows, out);
  minus.a = matrix(t, rows, out);
  minus.alpha.re = -1;
  minus.beta.re = 1;
  backward.op_a = SG_TRANSPOSE_T;
  backward.alpha.re = -rate;
  backward.beta.re = 1;
  check(sg_gemm_async(p->context, &forward, submit, NULL), "sg_gemm_async");
  check(sg_axpby_async(p->context, &minus, submit, NULL), "sg_axpby_async");
  check(sg_gemm_async(p->context, &backward, submit, NULL), "sg_gemm_async");
}

/* The order by hand: on a stream, and after nothing else but what events say. */
static inline sg_submit alone_on(sg_stream *stream) {
  sg_submit order = SG_SUBMIT_INIT;
  order.stream = stream;
  order.flags = SG_SUBMIT_UNTRACKED;
  return order;
}

static inline sg_stream *new_stream(const pattern *p) {
  sg_stream *made;
  check(sg_stream_create(p->context, 0, &made), "sg_stream_create");
  return made;
}

static inline sg_event *new_event(const pattern *p) {
  sg_event *made;
  check(sg_event_create(p->context, &made), "sg_event_create");
  return made;
}

static inline void record(sg_event *event, sg_stream *stream) {
  check(sg_event_record(event, stream), "sg_event_record");
}

static inline void follow(sg_stream *stream, sg_event *event) {
  check(sg_stream_wait_event(stream, event), "sg_stream_wait_event");
}

static inline sg_pipeline *new_pipeline(const pattern *p, uint64_t floats, int depth) {
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  sg_pipeline *made;
  options.input_bytes = floats * sizeof(float);
  options.depth = depth;
  check(sg_pipeline_create(p->context, &options, &made), "sg_pipeline_create");
  return made;
}

/* Adds a stage. `record` receives its graph: operations are recorded into it. */
static inline sg_stage add_stage(sg_pipeline *pipeline, const char *name, uint64_t output_floats,
                                 uint64_t workspace_floats, sg_submit *record) {
  sg_stage_desc desc = SG_STAGE_DESC_INIT;
  sg_stage stage = SG_STAGE_INIT;
  const sg_submit initial = SG_SUBMIT_INIT;
  desc.name = name;
  desc.output_bytes = output_floats * sizeof(float);
  desc.workspace_bytes = workspace_floats * sizeof(float);
  check(sg_pipeline_add_stage(pipeline, &desc, &stage), "sg_pipeline_add_stage");
  *record = initial;
  record->graph = stage.graph;
  return stage;
}

/* A part of the work, or a way to do all of it. It submits; the caller waits. */
typedef struct pattern_work {
  const char *name;
  void (*run)(void *state);
  enum { ARITHMETIC, COPIES_IN, COPIES_OUT, BETWEEN_DEVICES, RESOURCES } uses; /* of a part */
} pattern_work;

static inline double clock_seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds of one run. `shows`: prints its timeline, and writes its page. */
static inline double pattern_measure(const pattern *p, const pattern_work *work, void *state, int shows) {
  static char text[65536];
  sg_trace_metrics metrics = SG_TRACE_METRICS_INIT;
  sg_trace *trace;
  char path[1024];
  double begin, end;
  check(sg_context_synchronize(p->context, SG_FOREVER), "sg_context_synchronize");
  check(sg_trace_start(NULL, &trace), "sg_trace_start");
  begin = clock_seconds();
  work->run(state);
  check(sg_context_synchronize(p->context, SG_FOREVER), "sg_context_synchronize");
  end = clock_seconds();
  check(sg_trace_stop(trace), "sg_trace_stop");
  check(sg_trace_get_metrics(trace, p->context, &metrics), "sg_trace_get_metrics");
  if (shows) {
    uint64_t size = 0;
    check(sg_trace_export(trace, SG_TRACE_FORMAT_TEXT, text, sizeof text - 1, &size), "sg_trace_export");
    text[size < sizeof text ? size : sizeof text - 1] = '\0';
    printf("\n== %s\n%s\n", work->name, text);
    if (p->folder) {
      snprintf(path, sizeof path, "%s/%s.html", p->folder, work->name);
      check(sg_trace_write(trace, path, SG_TRACE_FORMAT_AUTO), "sg_trace_write");
    }
  }
  sg_trace_release(trace);
  return p->is_virtual ? metrics.span_seconds : end - begin;
}

/* Compares; the best of three runs counts. On a simulated device each way must reach 0.9 of the ideal. */
static inline void pattern_compare(const pattern *p, void *state, const pattern_work *parts, int part_count,
                                   const pattern_work *ways, int way_count) {
  double ideal = 0, seconds[8], busy[RESOURCES] = {0};
  int i, run;
  for (i = 0; i < part_count; ++i) parts[i].run(state); /* loads kernels */
  for (i = 0; i < part_count; ++i) {
    const double alone = pattern_measure(p, &parts[i], state, 0);
    busy[parts[i].uses] += alone;
    if (busy[parts[i].uses] > ideal) ideal = busy[parts[i].uses];
    printf("%-32s %8.3f ms alone\n", parts[i].name, alone * 1e3);
  }
  for (i = 0; i < way_count; ++i) {
    ways[i].run(state);
    seconds[i] = pattern_measure(p, &ways[i], state, 1);
    for (run = 1; run < 3; ++run) {
      const double again = pattern_measure(p, &ways[i], state, 0);
      if (again < seconds[i]) seconds[i] = again;
    }
  }
  for (i = 0; i < way_count; ++i) {
    printf("%-32s %8.3f ms, %.2f of the ideal\n", ways[i].name, seconds[i] * 1e3, ideal / seconds[i]);
    if (p->is_virtual) expect(ideal / seconds[i] >= 0.9, "0.9 of the ideal in virtual time");
  }
}

/* Results of two ways that add in another order at most. */
static inline void expect_equal(const float *x, const float *y, size_t count, const char *what) {
  size_t i;
  double largest = 0, difference = 0;
  for (i = 0; i < count; ++i) {
    const double of_x = fabs((double)x[i]), between = fabs((double)x[i] - (double)y[i]);
    expect(x[i] == x[i] && y[i] == y[i], what);
    if (of_x > largest) largest = of_x;
    if (between > difference) difference = between;
  }
  expect(largest > 0 && difference <= 1e-4 * largest, what);
}

#endif
