/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients are summed over devices beside the backward pass: as soon as the gradients of a bucket of layers are known,
 * NCCL adds those of all devices, while the gradients of earlier layers are computed. NCCL is loaded at run time, and
 * its call is a custom operation: it enqueues on the stream that the library gives it.
 *
 * Arguments: the devices, such as cuda:0 cuda:1. On other devices there is one rank, whose sum is its own, in the time
 * that NVLink would take. SG_NCCL: the library's path; by default libnccl.so.2. */
#include <dlfcn.h>
#include <pthread.h>

#include "pattern.h"

enum { LAYERS = 32, BUCKET = 4, BUCKETS = LAYERS / BUCKET, MAX_RANKS = 8 };

/* What is used of nccl.h. */
typedef struct nccl_functions {
  int (*init_all)(void **comms, int count, const int *devices);
  int (*all_reduce)(const void *from, void *to, size_t count, int type, int op, void *comm, void *stream);
  int (*destroy)(void *comm);
  const char *(*error)(int result);
} nccl_functions;
enum { NCCL_FLOAT = 7, NCCL_SUM = 0 };
static nccl_functions nccl;

typedef struct rank {
  pattern p;
  void *comm;                /* NULL: there is one rank */
  float *x, *dy, *gradients; /* of all layers: rows x width; width x width each */
  float *seen[3];            /* the gradients: of this rank alone, after each way */
  sg_stream *computing, *reducing;
  sg_event *computed[BUCKETS];
} rank;

static int64_t width, rows;
static rank ranks[MAX_RANKS];
static int rank_count;
static size_t bucket_floats(void) { return (size_t)(BUCKET * width * width); }

static sg_status reduce(const sg_custom_call *call, void *user) {
  const rank *const r = user;
  int result;
  if (!r->comm) return SG_STATUS_OK;
  result = nccl.all_reduce(call->operands[0], call->operands[0], bucket_floats(), NCCL_FLOAT, NCCL_SUM, r->comm,
                           call->native_stream);
  if (result == 0) return SG_STATUS_OK;
  snprintf(call->message, (size_t)call->message_size, "ncclAllReduce: %s", nccl.error(result));
  return SG_STATUS_BACKEND_FAILURE;
}

static void submit_reduction(rank *r, int bucket, const sg_submit *submit) {
  const sg_custom_operand sums = {r->gradients + (size_t)bucket * bucket_floats(), bucket_floats() * sizeof(float),
                                  SG_ACCESS_READ_WRITE};
  sg_custom_desc desc = SG_CUSTOM_DESC_INIT;
  desc.function = reduce;
  desc.user = r;
  desc.operands = &sums;
  desc.operand_count = 1;
  desc.seconds = 10e-6 + 2 * (double)sums.bytes / 400e9;
  desc.compute_units = -1;
  check(sg_custom_async(r->p.context, &desc, submit, NULL), "sg_custom_async");
}

/* dW = X^T dY of the layers of a bucket. */
static void submit_gradients(rank *r, int bucket, const sg_submit *submit) {
  int i;
  for (i = 0; i < BUCKET; ++i) {
    const int64_t at = bucket * BUCKET + i;
    sg_gemm_desc desc = SG_GEMM_DESC_INIT;
    desc.a = matrix(r->x + at * rows * width, rows, width);
    desc.b = matrix(r->dy, rows, width);
    desc.c = matrix(r->gradients + at * width * width, width, width);
    desc.op_a = SG_TRANSPOSE_T;
    check(sg_gemm_async(r->p.context, &desc, submit, NULL), "sg_gemm_async");
  }
}

static void keep(rank *r, int at) {
  check(sg_context_synchronize(r->p.context, SG_FOREVER), "sg_context_synchronize");
  check(sg_copy(r->p.context, r->seen[at], r->gradients, BUCKETS * bucket_floats() * sizeof(float), NULL), "sg_copy");
}

static void rank_backward(rank *r) {
  int bucket;
  for (bucket = BUCKETS - 1; bucket >= 0; --bucket) submit_gradients(r, bucket, NULL);
}
static void rank_reduce(rank *r) {
  sg_submit in_order = SG_SUBMIT_INIT;
  int bucket;
  in_order.stream = r->reducing;
  for (bucket = BUCKETS - 1; bucket >= 0; --bucket) submit_reduction(r, bucket, &in_order);
}
/* The stream keeps the reductions in one order on all ranks, as NCCL wants it; the memory orders all else. */
static void rank_by_memory(rank *r) {
  sg_submit in_order = SG_SUBMIT_INIT;
  int bucket;
  in_order.stream = r->reducing;
  for (bucket = BUCKETS - 1; bucket >= 0; --bucket) {
    submit_gradients(r, bucket, NULL);
    submit_reduction(r, bucket, &in_order);
  }
}
static void rank_by_hand(rank *r) {
  const sg_submit on = alone_on(r->computing), beside = alone_on(r->reducing);
  int bucket;
  for (bucket = BUCKETS - 1; bucket >= 0; --bucket) {
    submit_gradients(r, bucket, &on);
    record(r->computed[bucket], r->computing);
    follow(r->reducing, r->computed[bucket]);
    submit_reduction(r, bucket, &beside);
  }
}

/* A thread for each rank, as NCCL wants it. */
typedef struct rank_thread {
  rank *r;
  void (*run)(rank *r);
  pthread_t thread;
} rank_thread;

static void *run_rank(void *user) {
  rank_thread *const t = user;
  t->run(t->r);
  check(sg_context_synchronize(t->r->p.context, SG_FOREVER), "sg_context_synchronize");
  return NULL;
}

static void on_all(void (*run)(rank *r)) {
  rank_thread threads[MAX_RANKS];
  int i;
  for (i = 0; i < rank_count; ++i) {
    threads[i].r = &ranks[i];
    threads[i].run = run;
    expect(pthread_create(&threads[i].thread, NULL, run_rank, &threads[i]) == 0, "pthread_create");
  }
  for (i = 0; i < rank_count; ++i) pthread_join(threads[i].thread, NULL);
}

static void backward(void *state) { (void)state, on_all(rank_backward); }
static void reductions(void *state) { (void)state, on_all(rank_reduce); }
static void by_memory(void *state) { (void)state, on_all(rank_by_memory); }
static void by_hand(void *state) { (void)state, on_all(rank_by_hand); }

static void *function(void *library, const char *name) {
  void *const found = dlsym(library, name);
  expect(found != NULL, name);
  return found;
}

static void connect_ranks(char **devices) {
  const char *const path = getenv("SG_NCCL");
  void *const library = dlopen(path ? path : "libnccl.so.2", RTLD_NOW), *comms[MAX_RANKS];
  int numbers[MAX_RANKS], i;
  if (!library) fprintf(stderr, "%s\n", dlerror());
  expect(library != NULL, "several devices need NCCL");
  *(void **)&nccl.init_all = function(library, "ncclCommInitAll");
  *(void **)&nccl.all_reduce = function(library, "ncclAllReduce");
  *(void **)&nccl.destroy = function(library, "ncclCommDestroy");
  *(void **)&nccl.error = function(library, "ncclGetErrorString");
  for (i = 0; i < rank_count; ++i) numbers[i] = atoi(devices[i] + strlen("cuda:"));
  expect(nccl.init_all(comms, rank_count, numbers) == 0, "ncclCommInitAll");
  for (i = 0; i < rank_count; ++i) ranks[i].comm = comms[i];
}

static void open_rank(rank *r, char *program, char *device, unsigned seed) {
  char *arguments[] = {program, device};
  const size_t of_x = (size_t)(LAYERS * rows * width), of_dy = (size_t)(rows * width);
  int i;
  pattern_open(&r->p, 2, arguments);
  r->x = placed(&r->p, filled_host(&r->p, of_x, seed), of_x);
  r->dy = placed(&r->p, filled_host(&r->p, of_dy, seed + 100), of_dy);
  r->gradients = on_device(&r->p, BUCKETS * bucket_floats());
  for (i = 0; i < 3; ++i) r->seen[i] = on_host(&r->p, BUCKETS * bucket_floats());
  for (i = 0; i < BUCKETS; ++i) r->computed[i] = new_event(&r->p);
  r->computing = new_stream(&r->p);
  r->reducing = new_stream(&r->p);
}

int main(int argc, char **argv) {
  static const pattern_work parts[] = {{"backward", backward, ARITHMETIC}, {"all-reduce", reductions, BETWEEN_DEVICES}};
  static const pattern_work ways[] = {{"all-reduce beside backward", by_memory, 0},
                                      {"all-reduce beside backward, by hand", by_hand, 0}};
  static char simulated[] = "sim:h200";
  char *one[] = {simulated}, **devices = argc > 1 ? argv + 1 : one;
  int i, way;
  size_t k;
  rank_count = argc > 1 ? argc - 1 : 1;
  expect(rank_count <= MAX_RANKS, "the number of devices");
  width = strncmp(devices[0], "cuda", 4) == 0 ? 1024 : 256;
  rows = 2 * width;
  for (i = 0; i < rank_count; ++i) open_rank(&ranks[i], argv[0], devices[i], 1u + (unsigned)i);
  if (rank_count > 1) connect_ranks(devices);
  on_all(rank_backward);
  for (i = 0; i < rank_count; ++i) keep(&ranks[i], 0);
  pattern_compare(&ranks[0].p, NULL, parts, 2, ways, 2);
  for (way = 0; way < 2; ++way) {
    ways[way].run(NULL);
    for (i = 0; i < rank_count; ++i) keep(&ranks[i], way + 1);
  }
  for (k = 0; k < BUCKETS * bucket_floats(); ++k) { /* the sum, on rank 0 */
    float sum = 0;
    for (i = 0; i < rank_count; ++i) sum += ranks[i].seen[0][k];
    ranks[0].seen[0][k] = sum;
  }
  for (i = 0; i < rank_count; ++i)
    for (way = 1; way <= 2; ++way)
      expect_equal(ranks[0].seen[0], ranks[i].seen[way], BUCKETS * bucket_floats(), "the sum of all ranks' gradients");
  for (i = 0; i < rank_count; ++i) {
    int bucket;
    if (ranks[i].comm) nccl.destroy(ranks[i].comm);
    for (bucket = 0; bucket < BUCKETS; ++bucket) sg_event_release(ranks[i].computed[bucket]);
    sg_stream_release(ranks[i].computing);
    sg_stream_release(ranks[i].reducing);
    pattern_close(&ranks[i].p);
  }
  return 0;
}
