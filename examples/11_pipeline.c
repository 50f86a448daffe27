/* SPDX-License-Identifier: Apache-2.0 */
/* Batches in host memory pass through the layers of a network, Y = relu(X W), with weights on the device or streamed
 * from the host for each batch: by a pipeline, and by hand with two buffers and two streams. A trace measures each; the
 * ideal is the longest of its copies in, its arithmetic and its copies out, if all of them overlapped. Arguments: a
 * device; a folder for pages. */
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { ROWS = 256, WIDTH = 512, LAYERS = 6, BATCHES = 24, BUFFERS = 2 };
static const uint64_t batch_bytes = ROWS * WIDTH * sizeof(float), weight_bytes = WIDTH * WIDTH * sizeof(float);

typedef struct network {
  sg_context *context;
  float *weights[LAYERS]; /* in pinned memory: scaled rotations, so that each layer can be checked */
  float *inputs[BATCHES], *outputs[BATCHES];
} network;

/* Layer l moves column j to column (j + l + 1) mod WIDTH and doubles it. */
static void prepare(network *net, const char *device) {
  sg_context_options where = SG_CONTEXT_OPTIONS_INIT;
  int i, j;
  where.device = device;
  check(sg_context_create(&where, &net->context), "sg_context_create");
  for (i = 0; i < LAYERS; ++i) {
    check(sg_host_alloc(net->context, weight_bytes, (void **)&net->weights[i]), "sg_host_alloc");
    memset(net->weights[i], 0, weight_bytes);
    for (j = 0; j < WIDTH; ++j) net->weights[i][j * WIDTH + (j + i + 1) % WIDTH] = 2;
  }
  for (i = 0; i < BATCHES; ++i) {
    check(sg_host_alloc(net->context, batch_bytes, (void **)&net->inputs[i]), "sg_host_alloc");
    check(sg_host_alloc(net->context, batch_bytes, (void **)&net->outputs[i]), "sg_host_alloc");
    for (j = 0; j < ROWS * WIDTH; ++j) net->inputs[i][j] = (float)((i + j) % 7 - 3);
  }
}

static void finish(network *net) {
  int i, j, shift = 0;
  for (i = 0; i < LAYERS; ++i) shift += i + 1;
  for (i = 0; i < BATCHES; ++i)
    for (j = 0; j < ROWS * WIDTH; ++j) {
      const int row = j / WIDTH, column = (j % WIDTH + shift) % WIDTH;
      const float x = net->inputs[i][j], y = net->outputs[i][row * WIDTH + column];
      expect(y == (x > 0 ? x * (1 << LAYERS) : 0), "the result");
    }
  for (i = 0; i < LAYERS; ++i) check(sg_host_free(net->context, net->weights[i]), "sg_host_free");
  for (i = 0; i < BATCHES; ++i) {
    check(sg_host_free(net->context, net->inputs[i]), "sg_host_free");
    check(sg_host_free(net->context, net->outputs[i]), "sg_host_free");
  }
  sg_context_release(net->context);
}

static void layer(const network *net, const void *x, const void *w, void *y, const sg_submit *submit) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a.data = (void *)x;
  desc.a.rows = ROWS;
  desc.a.cols = WIDTH;
  desc.b.data = (void *)w;
  desc.b.rows = desc.b.cols = WIDTH;
  desc.c = desc.a;
  desc.c.data = y;
  desc.activation = SG_ACTIVATION_RELU;
  check(sg_gemm_async(net->context, &desc, submit, NULL), "sg_gemm_async");
}

/* Starts a trace once everything submitted before has completed. */
static sg_trace *start(const network *net) {
  sg_trace *trace;
  check(sg_context_synchronize(net->context, SG_FOREVER), "sg_context_synchronize");
  check(sg_trace_start(NULL, &trace), "sg_trace_start");
  return trace;
}

static void stop(const network *net, sg_trace *trace) {
  check(sg_context_synchronize(net->context, SG_FOREVER), "sg_context_synchronize");
  check(sg_trace_stop(trace), "sg_trace_stop");
}

static sg_trace *by_pipeline(const network *net, sg_weights_place place, int is_warm) {
  sg_trace *trace;
  sg_pipeline_options options = SG_PIPELINE_OPTIONS_INIT;
  sg_pipeline *pipeline;
  char text[1024];
  int i;
  options.input_bytes = batch_bytes;
  options.batches_in_flight = BATCHES;
  check(sg_pipeline_create(net->context, &options, &pipeline), "sg_pipeline_create");
  for (i = 0; i < LAYERS; ++i) {
    const sg_weight weights = {net->weights[i], weight_bytes};
    sg_stage_desc desc = SG_STAGE_DESC_INIT;
    sg_stage stage = SG_STAGE_INIT;
    sg_submit record = SG_SUBMIT_INIT;
    desc.output_bytes = batch_bytes;
    desc.weights = &weights;
    desc.weight_count = 1;
    desc.place = place;
    check(sg_pipeline_add_stage(pipeline, &desc, &stage), "sg_pipeline_add_stage");
    record.graph = stage.graph;
    layer(net, stage.input, stage.weights[0], stage.output, &record);
  }
  check(sg_pipeline_describe(pipeline, text, sizeof text, NULL), "sg_pipeline_describe");
  if (is_warm) fputs(text, stdout);
  trace = start(net);
  for (i = 0; i < BATCHES; ++i)
    check(sg_pipeline_push_async(pipeline, net->inputs[i], net->outputs[i], NULL, NULL), "sg_pipeline_push_async");
  stop(net, trace);
  sg_pipeline_release(pipeline);
  return trace;
}

/* The same with a stream and buffers for every other batch, and two buffers for weights that are filled in turn. The
 * library orders all of it by the memory that it reads and writes: without that, each line below would need an event.
 */
static sg_trace *by_hand(const network *net, sg_weights_place place, int is_warm) {
  sg_trace *trace;
  sg_stream *streams[BUFFERS];
  sg_buffer *memory[BUFFERS], *weights[LAYERS];
  char *batches[BUFFERS], *kept[LAYERS];
  const int weight_buffers = place == SG_WEIGHTS_STREAMED ? BUFFERS : LAYERS;
  int i, l;
  (void)is_warm;
  for (i = 0; i < BUFFERS; ++i) {
    check(sg_stream_create(net->context, 0, &streams[i]), "sg_stream_create");
    check(sg_buffer_create(net->context, 2 * batch_bytes, &memory[i]), "sg_buffer_create");
    check(sg_buffer_data(memory[i], (void **)&batches[i]), "sg_buffer_data");
  }
  for (l = 0; l < weight_buffers; ++l) {
    check(sg_buffer_create(net->context, weight_bytes, &weights[l]), "sg_buffer_create");
    check(sg_buffer_data(weights[l], (void **)&kept[l]), "sg_buffer_data");
    if (place == SG_WEIGHTS_RESIDENT)
      check(sg_copy_async(net->context, kept[l], net->weights[l], weight_bytes, NULL, NULL), "sg_copy_async");
  }
  trace = start(net);
  for (i = 0; i < BATCHES; ++i) {
    sg_submit order = SG_SUBMIT_INIT;
    char *x = batches[i % BUFFERS], *y = x + batch_bytes, *swapped;
    order.stream = streams[i % BUFFERS];
    check(sg_copy_async(net->context, x, net->inputs[i], batch_bytes, &order, NULL), "sg_copy_async");
    for (l = 0; l < LAYERS; ++l) {
      char *const w = kept[(i * LAYERS + l) % weight_buffers];
      if (place == SG_WEIGHTS_STREAMED) /* on no stream: as soon as the layer before has read the buffer */
        check(sg_copy_async(net->context, w, net->weights[l], weight_bytes, NULL, NULL), "sg_copy_async");
      layer(net, x, w, y, &order);
      swapped = x, x = y, y = swapped;
    }
    check(sg_copy_async(net->context, net->outputs[i], x, batch_bytes, &order, NULL), "sg_copy_async");
  }
  stop(net, trace);
  for (i = 0; i < BUFFERS; ++i) {
    sg_stream_release(streams[i]);
    sg_buffer_release(memory[i]);
  }
  for (l = 0; l < weight_buffers; ++l) sg_buffer_release(weights[l]);
  return trace;
}

/* Returns the ideal time over the measured one. */
static double measure(const char *device, const char *folder, const char *name, sg_weights_place place,
                      sg_trace *(*run)(const network *, sg_weights_place, int)) {
  sg_trace_metrics metrics = SG_TRACE_METRICS_INIT;
  sg_trace *trace;
  network net;
  char path[1024];
  double ideal;
  prepare(&net, device);
  sg_trace_release(run(&net, place, 0)); /* loads kernels */
  trace = run(&net, place, 1);
  check(sg_trace_get_metrics(trace, net.context, &metrics), "sg_trace_get_metrics");
  ideal = metrics.copy_in_seconds > metrics.copy_out_seconds ? metrics.copy_in_seconds : metrics.copy_out_seconds;
  if (metrics.compute_seconds > ideal) ideal = metrics.compute_seconds;
  printf("%-28s %8.3f ms, in %.3f, arithmetic %.3f, out %.3f; overlap efficiency %.2f, of the ideal %.2f\n\n", name,
         metrics.span_seconds * 1e3, metrics.copy_in_seconds * 1e3, metrics.compute_seconds * 1e3,
         metrics.copy_out_seconds * 1e3, metrics.overlap_efficiency, ideal / metrics.span_seconds);
  if (folder) {
    snprintf(path, sizeof path, "%s/%s.html", folder, name);
    check(sg_trace_write(trace, path, SG_TRACE_FORMAT_AUTO), "sg_trace_write");
  }
  sg_trace_release(trace);
  finish(&net);
  return ideal / metrics.span_seconds;
}

int main(int argc, char **argv) {
  const char *device = argc > 1 ? argv[1] : "sim:h200", *folder = argc > 2 ? argv[2] : NULL;
  const int is_virtual = strncmp(device, "sim:", 4) == 0;
  const double resident = measure(device, folder, "pipeline, resident weights", SG_WEIGHTS_RESIDENT, by_pipeline);
  const double streamed = measure(device, folder, "pipeline, streamed weights", SG_WEIGHTS_STREAMED, by_pipeline);
  measure(device, folder, "by hand, resident weights", SG_WEIGHTS_RESIDENT, by_hand);
  measure(device, folder, "by hand, streamed weights", SG_WEIGHTS_STREAMED, by_hand);
  if (is_virtual) expect(resident > 0.9 && streamed > 0.9, "at least 0.9 of the ideal in virtual time");
  return 0;
}
