/* SPDX-License-Identifier: Apache-2.0 */
/* A server in miniature: every thread has requests of mixed sizes and keeps all of them in flight, each a GEMM of
 * its own. The library batches the GEMMs that are queued at the same time. Prints throughput
 * and latencies with and without that, on one stream, and with a stream for each request. usage: 08_serving [device]
 * [seconds] [threads] */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "check.h"

enum { WIDTH = 64, MOST_ROWS = 256, REQUESTS = 16 /* of a thread */, SAMPLES = 1 << 16, MOST_THREADS = 64 };

typedef enum order { NO_STREAM, ONE_STREAM, STREAM_EACH } order;

typedef struct mode {
  const char *name;
  uint32_t flags;
  order streams;
} mode;

static const mode modes[] = {{"coalescing, no stream", SG_CONTEXT_DEFAULT, NO_STREAM},
                             {"coalescing, a stream each", SG_CONTEXT_DEFAULT, STREAM_EACH},
                             {"coalescing, one stream", SG_CONTEXT_DEFAULT, ONE_STREAM},
                             {"no coalescing, no stream", SG_CONTEXT_NO_COALESCING, NO_STREAM},
                             {"no coalescing, a stream each", SG_CONTEXT_NO_COALESCING, STREAM_EACH}};

/* C = A * W: `rows` rows of features by the model's weights, all in the device's memory. */
typedef struct request {
  int64_t rows;
  float *a, *c;
  sg_stream *stream;
  int64_t submitted_ns;
  sg_job *job;
} request;

typedef struct worker {
  sg_context *context;
  float *weights;
  request pool[REQUESTS];
  int64_t stop_ns;
  int64_t served, batched;
  int64_t latencies_ns[SAMPLES];
  pthread_t thread;
} worker;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void submit(const worker *w, request *r) {
  sg_submit options = SG_SUBMIT_INIT;
  options.stream = r->stream;
  r->submitted_ns = now_ns();
  check(sg_sgemm_async(w->context, SG_LAYOUT_ROW_MAJOR, SG_TRANSPOSE_N, SG_TRANSPOSE_N, r->rows, WIDTH, WIDTH, 1.0f,
                       r->a, WIDTH, w->weights, WIDTH, 0.0f, r->c, WIDTH, &options, &r->job),
        "sg_sgemm_async");
}

static void finish(worker *w, request *r) {
  sg_job_statistics did = SG_JOB_STATISTICS_INIT;
  check(sg_job_wait(r->job, SG_FOREVER, NULL), "a request");
  w->latencies_ns[w->served++ % SAMPLES] = now_ns() - r->submitted_ns;
  check(sg_job_get_statistics(r->job, &did), "sg_job_get_statistics");
  if (did.batch_size > 1) ++w->batched;
  check(sg_job_release(r->job), "sg_job_release");
}

/* The oldest request is finished first, and submitted again. */
static void *serve(void *argument) {
  worker *w = argument;
  int64_t submitted = 0;
  while (submitted < REQUESTS) submit(w, &w->pool[submitted++]);
  while (now_ns() < w->stop_ns) {
    request *oldest = &w->pool[w->served % REQUESTS];
    finish(w, oldest);
    submit(w, oldest);
    ++submitted;
  }
  while (w->served < submitted) finish(w, &w->pool[w->served % REQUESTS]);
  return NULL;
}

static int64_t rows_of(int i) {
  static const int64_t rows[] = {8, 192, 16, 128, 32, MOST_ROWS, 64, 96};
  return rows[i % 8];
}

/* Request i has A = i + 1 everywhere, and the weights are 1, 2, 3, 4 by column. */
static float wanted(int i, int64_t col) { return (float)(WIDTH * (i + 1) * (col % 4 + 1)); }

static float *device_memory(sg_context *context, uint64_t floats, sg_buffer **out_buffer) {
  void *data;
  check(sg_buffer_create(context, floats * sizeof(float), NULL, out_buffer), "sg_buffer_create");
  check(sg_buffer_data(*out_buffer, &data), "sg_buffer_data");
  return data;
}

static void prepare(worker *w, sg_context *context, float *weights, float *memory, sg_stream *shared, order streams) {
  static float values[MOST_ROWS * WIDTH];
  w->context = context;
  w->weights = weights;
  w->served = w->batched = 0;
  for (int i = 0; i < REQUESTS; ++i) {
    request *r = &w->pool[i];
    r->rows = rows_of(i);
    r->a = memory + (size_t)i * 2 * MOST_ROWS * WIDTH;
    r->c = r->a + MOST_ROWS * WIDTH;
    r->stream = streams == ONE_STREAM ? shared : NULL;
    if (streams == STREAM_EACH) check(sg_stream_create(context, NULL, &r->stream), "sg_stream_create");
    for (int64_t x = 0; x < MOST_ROWS * WIDTH; ++x) values[x] = (float)(i + 1);
    check(sg_copy(context, r->a, values, sizeof values, NULL), "sg_copy");
  }
}

static void look_at_results(const worker *w) {
  static float values[MOST_ROWS * WIDTH];
  for (int i = 0; i < REQUESTS; ++i) {
    const request *r = &w->pool[i];
    check(sg_copy(w->context, values, r->c, (uint64_t)r->rows * WIDTH * sizeof(float), NULL), "sg_copy");
    for (int64_t x = 0; x < r->rows * WIDTH; ++x) expect(values[x] == wanted(i, x % WIDTH), "a request's answer");
  }
}

static int by_value(const void *x, const void *y) {
  const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
  return (a > b) - (a < b);
}

static void report(const mode *how, const worker *workers, int threads, double seconds) {
  int64_t *all = malloc(sizeof(int64_t) * SAMPLES * (size_t)threads), served = 0, batched = 0;
  size_t count = 0;
  expect(all != NULL, "memory");
  for (const worker *w = workers; w < workers + threads; ++w) {
    const size_t kept = (size_t)(w->served < SAMPLES ? w->served : SAMPLES);
    memcpy(all + count, w->latencies_ns, kept * sizeof(int64_t));
    count += kept;
    served += w->served;
    batched += w->batched;
  }
  qsort(all, count, sizeof(int64_t), by_value);
  printf("%-30s %10.0f %8.1f %8.1f %8.1f %9.1f %8.0f%%\n", how->name, (double)served / seconds,
         (double)all[count / 2] * 1e-3, (double)all[count * 9 / 10] * 1e-3, (double)all[count * 99 / 100] * 1e-3,
         (double)all[count - 1] * 1e-3, 100.0 * (double)batched / (double)served);
  free(all);
}

static void run(const char *device, const mode *how, double seconds, int threads) {
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  sg_context *context;
  sg_buffer *weight_buffer, *request_buffer;
  sg_stream *stream;
  float columns[WIDTH * WIDTH];
  worker *workers = calloc((size_t)threads, sizeof(worker));
  expect(workers != NULL, "memory");
  options.device = device;
  options.flags = how->flags;
  check(sg_context_create(&options, &context), "sg_context_create");
  check(sg_stream_create(context, NULL, &stream), "sg_stream_create");

  float *weights = device_memory(context, WIDTH * WIDTH, &weight_buffer);
  for (int x = 0; x < WIDTH * WIDTH; ++x) columns[x] = (float)(x % WIDTH % 4 + 1);
  check(sg_copy(context, weights, columns, sizeof columns, NULL), "sg_copy");
  const size_t of_a_thread = (size_t)REQUESTS * 2 * MOST_ROWS * WIDTH;
  float *memory = device_memory(context, of_a_thread * (uint64_t)threads, &request_buffer);
  for (int t = 0; t < threads; ++t)
    prepare(&workers[t], context, weights, memory + of_a_thread * (size_t)t, stream, how->streams);

  const int64_t start = now_ns();
  for (int t = 0; t < threads; ++t) {
    workers[t].stop_ns = start + (int64_t)(seconds * 1e9);
    expect(pthread_create(&workers[t].thread, NULL, serve, &workers[t]) == 0, "a thread");
  }
  for (int t = 0; t < threads; ++t) pthread_join(workers[t].thread, NULL);
  report(how, workers, threads, (double)(now_ns() - start) * 1e-9);

  for (int t = 0; t < threads; ++t) {
    look_at_results(&workers[t]);
    for (int i = 0; how->streams == STREAM_EACH && i < REQUESTS; ++i) sg_stream_release(workers[t].pool[i].stream);
  }
  sg_stream_release(stream);
  sg_buffer_release(weight_buffer);
  sg_buffer_release(request_buffer);
  sg_context_release(context);
  free(workers);
}

int main(int argc, char **argv) {
  const size_t count = sizeof modes / sizeof *modes;
  const double seconds = argc > 2 ? atof(argv[2]) : 2;
  const int threads = argc > 3 ? atoi(argv[3]) : 8;
  expect(seconds > 0 && threads > 0 && threads <= MOST_THREADS, "usage: 08_serving [device] [seconds] [threads]");
  printf("%-30s %10s %8s %8s %8s %9s %9s\n", "", "requests/s", "p50 us", "p90 us", "p99 us", "max us", "batched");
  for (size_t i = 0; i < count; ++i) run(argc > 1 ? argv[1] : NULL, &modes[i], seconds / (double)count, threads);
  return 0;
}
