/* SPDX-License-Identifier: Apache-2.0 */
/* A puzzle: 1000 GEMMs of 1024 x 1024 matrices on the device, and 100 copies of such a matrix each way. When do the
 * copies run beside the GEMMs? Each variant prints its time, what part of the copying was hidden, and how long the
 * program's own thread was busy or blocked; in a folder, if one is given, each leaves its trace as a page.
 *
 *   one stream            all in one stream: each command waits for the one before. Nothing is hidden.
 *   blocking, first       blocking copies, then the GEMMs: the device has no GEMM while it copies. Nothing is hidden.
 *   blocking, behind      GEMMs submitted first, then blocking copies: a blocking call blocks its thread, not the
 * device. The copies run beside the GEMMs, but each starts only when the thread has seen the one before. one copy, ten
 * GEMMs   a blocking copy each way after ten GEMMs: as long as the GEMMs are queued, the copies are hidden. three
 * streams         nothing blocks: copies to the device, copies from it and GEMMs, each in a stream of its own.
 *
 * The answer: whether a call blocks decides when the next one is submitted, and nothing else. Copies and GEMMs overlap
 * if they are submitted before the device has run out of work, in different streams, with pinned memory. Arguments: a
 * device; a folder. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "check.h"

enum { SIZE = 1024, GEMMS = 1000, COPIES = 100, VARIANTS = 5 };
static const uint64_t bytes = (uint64_t)SIZE * SIZE * sizeof(float);
static const char *const names[VARIANTS] = {"one stream", "blocking, first", "blocking, behind", "one copy, ten GEMMs",
                                            "three streams"};

typedef struct work {
  sg_context *context;
  sg_buffer *buffers[5];
  void *a, *b, *c, *in, *out; /* on the device */
  float *host_in, *host_out;  /* pinned */
} work;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void prepare(const char *device, work *w) {
  sg_context_options where = SG_CONTEXT_OPTIONS_INIT;
  void **const data[5] = {&w->a, &w->b, &w->c, &w->in, &w->out};
  int i;
  where.device = device;
  check(sg_context_create(&where, &w->context), "sg_context_create");
  for (i = 0; i < 5; ++i) {
    check(sg_buffer_create(w->context, bytes, &w->buffers[i]), "sg_buffer_create");
    check(sg_buffer_data(w->buffers[i], data[i]), "sg_buffer_data");
  }
  check(sg_host_alloc(w->context, bytes, (void **)&w->host_in), "sg_host_alloc");
  check(sg_host_alloc(w->context, bytes, (void **)&w->host_out), "sg_host_alloc");
  for (i = 0; i < SIZE * SIZE; ++i) w->host_in[i] = 0.5F;
  for (i = 0; i < 4; ++i) check(sg_copy(w->context, *data[i], w->host_in, bytes, NULL), "sg_copy");
  check(sg_copy(w->context, w->out, w->host_in, bytes, NULL), "sg_copy");
}

static void gemm(const work *w, sg_stream *stream) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  sg_submit order = SG_SUBMIT_INIT;
  const sg_matrix square = {NULL, SIZE, SIZE, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR};
  desc.a = desc.b = desc.c = square;
  desc.a.data = w->a;
  desc.b.data = w->b;
  desc.c.data = w->c;
  order.stream = stream;
  check(sg_gemm_async(w->context, &desc, &order, NULL), "sg_gemm_async");
}

static void copy(const work *w, int to_device, int blocks, sg_stream *stream) {
  sg_submit order = SG_SUBMIT_INIT;
  void *const to = to_device ? w->in : (void *)w->host_out;
  const void *const from = to_device ? (void *)w->host_in : w->out;
  order.stream = stream;
  if (blocks)
    check(sg_copy(w->context, to, from, bytes, &order), "sg_copy");
  else
    check(sg_copy_async(w->context, to, from, bytes, &order, NULL), "sg_copy_async");
}

static void submit(const work *w, int variant, sg_stream *const *streams) {
  int i;
  switch (variant) {
    case 0:
    case 4: /* the same calls; only the streams differ */
      for (i = 0; i < GEMMS; ++i) {
        gemm(w, streams[0]);
        if (i % (GEMMS / COPIES) != 0) continue;
        copy(w, 1, 0, streams[variant == 0 ? 0 : 1]);
        copy(w, 0, 0, streams[variant == 0 ? 0 : 2]);
      }
      break;
    case 1:
      for (i = 0; i < COPIES; ++i) copy(w, 1, 1, streams[1]), copy(w, 0, 1, streams[2]);
      for (i = 0; i < GEMMS; ++i) gemm(w, streams[0]);
      break;
    case 2:
      for (i = 0; i < GEMMS; ++i) gemm(w, streams[0]);
      for (i = 0; i < COPIES; ++i) copy(w, 1, 1, streams[1]), copy(w, 0, 1, streams[2]);
      break;
    default:
      for (i = 0; i < GEMMS; ++i) {
        gemm(w, streams[0]);
        if ((i + 1) % (GEMMS / COPIES) == 0) copy(w, 1, 1, streams[1]), copy(w, 0, 1, streams[2]);
      }
      break;
  }
}

static sg_trace_metrics measure(const work *w, int variant, const char *folder, double *thread_seconds) {
  sg_trace_metrics metrics = SG_TRACE_METRICS_INIT;
  sg_stream *streams[3];
  sg_trace *trace;
  char path[1024];
  double start;
  int i;
  for (i = 0; i < 3; ++i) check(sg_stream_create(w->context, 0, &streams[i]), "sg_stream_create");
  check(sg_trace_start(NULL, &trace), "sg_trace_start");
  start = now();
  submit(w, variant, streams);
  *thread_seconds = now() - start;
  check(sg_context_synchronize(w->context, SG_FOREVER), "sg_context_synchronize");
  check(sg_trace_stop(trace), "sg_trace_stop");
  check(sg_trace_get_metrics(trace, w->context, &metrics), "sg_trace_get_metrics");
  if (folder) {
    snprintf(path, sizeof path, "%s/copies-%d.html", folder, variant + 1);
    check(sg_trace_write(trace, path, SG_TRACE_FORMAT_AUTO), "sg_trace_write");
  }
  sg_trace_release(trace);
  for (i = 0; i < 3; ++i) sg_stream_release(streams[i]);
  return metrics;
}

int main(int argc, char **argv) {
  const char *device = argc > 1 ? argv[1] : "sim:h200?timing-only", *folder = argc > 2 ? argv[2] : NULL;
  sg_trace_metrics all[VARIANTS];
  work w = {NULL, {NULL}, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  double thread_seconds = 0;
  int i;
  prepare(device, &w);
  gemm(&w, NULL); /* kernels are loaded */
  check(sg_context_synchronize(w.context, SG_FOREVER), "sg_context_synchronize");
  printf("%-20s %10s %10s %10s %8s %10s\n", "on ", "span", "GEMMs", "copies", "hidden", "thread");
  for (i = 0; i < VARIANTS; ++i) {
    const sg_trace_metrics *m = &all[i];
    all[i] = measure(&w, i, folder, &thread_seconds);
    printf("%-20s %7.2f ms %7.2f ms %7.2f ms %6.1f %% %7.2f ms\n", names[i], m->span_seconds * 1e3,
           m->compute_seconds * 1e3, (m->copy_in_seconds + m->copy_out_seconds) * 1e3, 100 * m->overlap_efficiency,
           thread_seconds * 1e3);
    expect(m->jobs == GEMMS + 2 * COPIES && m->failed_jobs == 0, "every job was recorded and succeeded");
  }
  for (i = 0; i < 5; ++i) sg_buffer_release(w.buffers[i]);
  check(sg_host_free(w.context, w.host_in), "sg_host_free");
  check(sg_host_free(w.context, w.host_out), "sg_host_free");
  sg_context_release(w.context);
  if (strncmp(device, "sim", 3) == 0) { /* on the cpu there are no copies to hide, and a GPU's figures are its own */
    expect(all[0].overlap_efficiency < 0.01, "one stream hides nothing");
    expect(all[1].overlap_efficiency < 0.01, "copies that block before the GEMMs hide nothing");
    expect(all[2].overlap_efficiency > 0.99, "copies behind queued GEMMs are hidden");
    expect(all[4].overlap_efficiency > 0.99, "three streams hide all copies");
    expect(all[4].span_seconds < 1.05 * all[4].compute_seconds, "three streams take as long as the GEMMs");
    expect(all[0].span_seconds > 1.2 * all[4].span_seconds, "one stream takes longer");
  }
  return 0;
}
