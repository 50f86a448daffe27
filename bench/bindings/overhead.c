/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of one asynchronous GEMM of 4 x 4 matrices in C: the baseline of the other languages, which run the same
 * program. Prints one line of JSON; README.md describes its fields.
 * usage: overhead_c CALLS */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <streamgemm/streamgemm.h>
#include <time.h>

enum { N = 4, BLOCK = 1000, GATE = 512, WARM_UP = 20, PIPELINE = 64 };

static sg_context *context;
static sg_stream *stream;
static float a[N * N], b[N * N], c[BLOCK][N * N];
static double gate_in[GATE * GATE], gate_out[GATE * GATE];

static void check(sg_status status) {
  if (status == SG_STATUS_OK) return;
  fprintf(stderr, "%s: %s\n", sg_status_name(status), sg_last_error_message());
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static sg_job *submit(void *left, void *right, void *into, int64_t n, sg_dtype dtype, sg_stream *on) {
  const sg_matrix square = {NULL, n, n, n, dtype, SG_LAYOUT_ROW_MAJOR};
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  sg_submit order = SG_SUBMIT_INIT;
  sg_job *job;
  desc.a = desc.b = desc.c = square;
  desc.a.data = left;
  desc.b.data = right;
  desc.c.data = into;
  order.stream = on;
  check(sg_gemm_async(context, &desc, &order, &job));
  return job;
}

static void finish(sg_job **jobs, int count) {
  check(sg_job_wait_all(jobs, count, SG_FOREVER, NULL));
  for (int i = 0; i < count; ++i) check(sg_job_release(jobs[i]));
}

/* Calls that the worker cannot start yet, behind a GEMM of some milliseconds: only the submission is timed. */
static void run_behind_gate(long blocks, double *cost) {
  static sg_job *jobs[BLOCK + 1];
  for (long block = 0; block < blocks; ++block) {
    jobs[BLOCK] = submit(gate_in, gate_in, gate_out, GATE, SG_DTYPE_F64, stream);
    for (int i = 0; i < BLOCK; ++i) {
      const double before = now();
      jobs[i] = submit(a, b, c[i], N, SG_DTYPE_F32, stream);
      cost[block * BLOCK + i] = now() - before;
    }
    finish(jobs, BLOCK + 1);
  }
}

/* Calls that run at once, some in flight together. Microseconds for each, start to completion. */
static double run_pipelined(long calls) {
  sg_job *jobs[PIPELINE];
  const double start = now();
  for (long done = 0; done < calls; done += PIPELINE) {
    for (int i = 0; i < PIPELINE; ++i) jobs[i] = submit(a, b, c[i], N, SG_DTYPE_F32, NULL);
    finish(jobs, PIPELINE);
  }
  return (now() - start) / (double)calls;
}

/* Calls that are waited for one by one. */
static void run_lone(long calls, double *cost) {
  for (long i = 0; i < calls; ++i) {
    const double before = now();
    sg_job *job = submit(a, b, c[0], N, SG_DTYPE_F32, NULL);
    check(sg_job_wait(job, SG_FOREVER, NULL));
    cost[i] = now() - before;
    check(sg_job_release(job));
  }
}

static int by_value(const void *x, const void *y) {
  const double d = *(const double *)x - *(const double *)y;
  return (d > 0) - (d < 0);
}

static double median(double *values, long count) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  return values[count / 2];
}

int main(int argc, char **argv) {
  const long blocks = (argc > 1 ? atol(argv[1]) : 100000) / BLOCK, calls = blocks * BLOCK, lone = calls / 10;
  sg_context_options options = SG_CONTEXT_OPTIONS_INIT;
  double *cost = malloc(sizeof *cost * (size_t)BLOCK * (size_t)(blocks > WARM_UP ? blocks : WARM_UP)), call, pipelined;
  if (!cost || blocks < 1) return 1;
  options.device = "cpu";
  options.compute_lanes = 1; /* the caller keeps a core for itself */
  check(sg_context_create(&options, &context));
  check(sg_stream_create(context, NULL, &stream));
  for (int i = 0; i < N * N; ++i) a[i] = b[i] = 1;
  for (int i = 0; i < GATE * GATE; ++i) gate_in[i] = 1;
  run_behind_gate(WARM_UP, cost);
  run_behind_gate(blocks, cost);
  call = median(cost, calls);
  pipelined = run_pipelined(calls / PIPELINE * PIPELINE);
  run_lone(lone, cost);
  printf("{\"language\": \"C\", \"calls\": %ld, \"call_us\": %.3f, \"pipelined_us\": %.3f, \"lone_us\": %.3f}\n", calls,
         call, pipelined, median(cost, lone));
  for (int i = 0; i < N * N; ++i) {
    if (c[BLOCK - 1][i] != N) return 1;
  }
  check(sg_stream_release(stream));
  check(sg_context_release(context));
  free(cost);
  return 0;
}
