/* SPDX-License-Identifier: Apache-2.0 */
/* Two batches of copy in, GEMM and copy out: on one stream, each waits for the one before; on two streams the copies of
 * one run beside the GEMM of the other. On the device of data/textbook.json each step takes one unit of time: 6 units
 * become 4, a speed-up of 1.50. A trace shows it as rows of characters, and in a folder, if one is given, as picture
 * and page. Arguments: a device; a folder. */
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { SIZE = 64, BATCHES = 2 };
static const uint64_t bytes = SIZE * SIZE * sizeof(double);

typedef struct batch {
  double *host; /* pinned; the result takes the place of the input */
  sg_buffer *buffers[3];
  void *device[3]; /* a, b, c */
} batch;

static void prepare(sg_context *context, batch *b) {
  int i;
  check(sg_host_alloc(context, bytes, (void **)&b->host), "sg_host_alloc");
  for (i = 0; i < 3; ++i) {
    check(sg_buffer_create(context, bytes, &b->buffers[i]), "sg_buffer_create");
    check(sg_buffer_data(b->buffers[i], &b->device[i]), "sg_buffer_data");
  }
  /* b is twice the identity. */
  memset(b->host, 0, bytes);
  for (i = 0; i < SIZE; ++i) b->host[i * SIZE + i] = 2;
  check(sg_copy(context, b->device[1], b->host, bytes, NULL), "sg_copy");
  for (i = 0; i < SIZE * SIZE; ++i) b->host[i] = i;
}

static void run(sg_context *context, const batch *b, sg_stream *stream) {
  sg_submit order = SG_SUBMIT_INIT;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  const sg_matrix square = {NULL, SIZE, SIZE, 0, SG_DTYPE_F64, SG_LAYOUT_ROW_MAJOR};
  order.stream = stream;
  desc.a = desc.b = desc.c = square;
  desc.a.data = b->device[0];
  desc.b.data = b->device[1];
  desc.c.data = b->device[2];
  check(sg_copy_async(context, b->device[0], b->host, bytes, &order, NULL), "sg_copy_async");
  check(sg_gemm_async(context, &desc, &order, NULL), "sg_gemm_async");
  check(sg_copy_async(context, b->host, b->device[2], bytes, &order, NULL), "sg_copy_async");
}

static void show(sg_trace *trace, const char *folder, const char *name) {
  static const char *const endings[] = {"svg", "html"};
  static char text[65536];
  char path[1024];
  uint64_t size = 0;
  int i;
  check(sg_trace_export(trace, SG_TRACE_FORMAT_TEXT, text, sizeof text - 1, &size), "sg_trace_export");
  text[size < sizeof text ? size : sizeof text - 1] = '\0';
  printf("== %s\n%s\n", name, text);
  for (i = 0; folder && i < 2; ++i) {
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, endings[i]);
    check(sg_trace_write(trace, path, SG_TRACE_FORMAT_AUTO), "sg_trace_write");
  }
}

/* Returns the time from the first command to the end of the last, and how many commands ran at a time. */
static double measure(const char *device, int streams, const char *folder, double *parallelism) {
  sg_context_options where = SG_CONTEXT_OPTIONS_INIT;
  sg_trace_metrics metrics = SG_TRACE_METRICS_INIT;
  sg_context *context;
  sg_stream *stream[BATCHES];
  sg_trace *trace;
  batch batches[BATCHES];
  int i, j;
  where.device = device;
  check(sg_context_create(&where, &context), "sg_context_create");
  for (i = 0; i < BATCHES; ++i) prepare(context, &batches[i]);
  for (i = 0; i < BATCHES; ++i) check(sg_stream_create(context, 0, &stream[i]), "sg_stream_create");

  check(sg_trace_start(NULL, &trace), "sg_trace_start");
  for (i = 0; i < BATCHES; ++i) run(context, &batches[i], stream[i % streams]);
  check(sg_context_synchronize(context, SG_FOREVER), "sg_context_synchronize");
  check(sg_trace_stop(trace), "sg_trace_stop");
  check(sg_trace_get_metrics(trace, context, &metrics), "sg_trace_get_metrics");
  show(trace, folder, streams == 1 ? "one-stream" : "two-streams");

  for (i = 0; i < BATCHES; ++i) {
    for (j = 0; j < SIZE * SIZE; ++j) expect(batches[i].host[j] == 2.0 * j, "the result");
    for (j = 0; j < 3; ++j) sg_buffer_release(batches[i].buffers[j]);
    check(sg_host_free(context, batches[i].host), "sg_host_free");
    sg_stream_release(stream[i]);
  }
  sg_trace_release(trace);
  sg_context_release(context);
  *parallelism = metrics.command_seconds / metrics.span_seconds;
  return metrics.span_seconds;
}

int main(int argc, char **argv) {
  const char *device = argc > 1 ? argv[1] : "sim:h200", *folder = argc > 2 ? argv[2] : NULL;
  double serial = 0, overlapped = 0;
  const double one = measure(device, 1, folder, &serial), two = measure(device, 2, folder, &overlapped);
  printf("one stream %.3f ms, two streams %.3f ms: speed-up %.2f; %.2f and %.2f commands at a time\n", one * 1e3,
         two * 1e3, one / two, serial, overlapped);
  if (strstr(device, "textbook")) {
    expect(one > 5.999e-3 && one < 6.001e-3, "6 units on one stream");
    expect(two > 3.999e-3 && two < 4.001e-3, "4 units on two streams");
    expect(overlapped > 1.499 && overlapped < 1.501, "1.5 commands at a time");
  }
  return 0;
}
