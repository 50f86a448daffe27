/* SPDX-License-Identifier: Apache-2.0 */
/* A prefetching loader: a thread makes batches in a few pinned slots, which are copied to the device while it trains on
 * earlier ones. A slot is filled again when its batch has left it. By a pipeline of one stage; by hand with two
 * streams, two buffers, and an event each for "arrived" and "free". */
#include <pthread.h>

#include "pattern.h"

enum { ROWS = 128, IN = 1024, OUT = 64, BATCH = ROWS * (IN + OUT), BATCHES = 32, SLOTS = 6, BUFFERS = 2 };
static const double rate = 2e-3;

typedef struct state {
  pattern p;
  float *slots[SLOTS], *truth; /* a batch: x, then t */
  float *w, *start;
  float *buffers[BUFFERS], *error;
  float *errors;  /* x w - t of each batch, before its step */
  float *seen[2]; /* w after each way */
  sg_pipeline *pipeline;
  sg_stream *copies, *training;
  sg_event *arrived[BUFFERS], *is_free[BUFFERS];
} state;

static void make_batch(const state *s, float *slot, int number) {
  int i, j;
  fill(slot, ROWS * IN, 1000u + (unsigned)number);
  for (i = 0; i < ROWS; ++i) /* of sparse weights: x's first columns, doubled */
    for (j = 0; j < OUT; ++j) slot[ROWS * IN + i * OUT + j] = 2 * slot[i * IN + j];
  (void)s;
}

/* The loader: batches 0, 1, ... into slots in turn, when they are free. */
typedef struct loader {
  const state *of;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int made, freed; /* batches */
} loader;

static void *load(void *user) {
  loader *const l = user;
  int i;
  for (i = 0; i < BATCHES; ++i) {
    pthread_mutex_lock(&l->lock);
    while (i - l->freed >= SLOTS) pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    make_batch(l->of, l->of->slots[i % SLOTS], i);
    pthread_mutex_lock(&l->lock);
    l->made = i + 1;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
  }
  return NULL;
}

static void start_loader(loader *l, const state *s) {
  l->of = s;
  l->made = l->freed = 0;
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->changed, NULL);
  expect(pthread_create(&l->thread, NULL, load, l) == 0, "pthread_create");
}

static const float *next_batch(loader *l, int number) {
  pthread_mutex_lock(&l->lock);
  while (l->made <= number) pthread_cond_wait(&l->changed, &l->lock);
  pthread_mutex_unlock(&l->lock);
  return l->of->slots[number % SLOTS];
}

/* Batches are complete in their order. */
static void release_slot(sg_job *job, sg_status status, void *user) {
  loader *const l = user;
  (void)job;
  check(status, "a batch");
  pthread_mutex_lock(&l->lock);
  ++l->freed;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
}

static void set_free(loader *l, int batches) {
  pthread_mutex_lock(&l->lock);
  l->freed = batches;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
}

static void end_loader(loader *l) {
  pthread_join(l->thread, NULL);
  pthread_mutex_destroy(&l->lock);
  pthread_cond_destroy(&l->changed);
}

static void start_over(const state *s) { copy(&s->p, s->w, s->start, IN * OUT, NULL); }

static void loading(void *user) {
  state *const s = user;
  loader l;
  int i;
  start_loader(&l, s);
  for (i = 0; i < BATCHES; ++i) {
    copy(&s->p, s->buffers[i % BUFFERS], next_batch(&l, i), BATCH, NULL);
    if (i >= SLOTS - 1) {
      check(sg_context_synchronize(s->p.context, SG_FOREVER), "sg_context_synchronize");
      set_free(&l, i + 1);
    }
  }
  end_loader(&l);
}

static void training(void *user) {
  state *const s = user;
  int i;
  start_over(s);
  for (i = 0; i < BATCHES; ++i) {
    const float *const x = s->buffers[i % BUFFERS];
    train(&s->p, x, x + ROWS * IN, s->w, s->error, ROWS, IN, OUT, rate, NULL);
  }
}

static void by_pipeline(void *user) {
  state *const s = user;
  sg_job *job;
  loader l;
  int i;
  start_over(s);
  start_loader(&l, s);
  for (i = 0; i < BATCHES; ++i) {
    check(sg_pipeline_push_async(s->pipeline, next_batch(&l, i), s->errors + i * ROWS * OUT, NULL, &job),
          "sg_pipeline_push_async");
    check(sg_job_on_complete(job, release_slot, &l), "sg_job_on_complete");
    sg_job_release(job);
  }
  pthread_mutex_lock(&l.lock);
  while (l.freed < BATCHES) pthread_cond_wait(&l.changed, &l.lock);
  pthread_mutex_unlock(&l.lock);
  end_loader(&l);
  copy(&s->p, s->seen[0], s->w, IN * OUT, NULL);
}

static void by_hand(void *user) {
  state *const s = user;
  const sg_submit in = alone_on(s->copies), on = alone_on(s->training);
  loader l;
  int i;
  start_over(s);
  check(sg_context_synchronize(s->p.context, SG_FOREVER), "sg_context_synchronize");
  start_loader(&l, s);
  for (i = 0; i < BATCHES; ++i) {
    const int b = i % BUFFERS;
    if (i >= BUFFERS) {
      check(sg_event_wait(s->arrived[b], SG_FOREVER), "sg_event_wait"); /* batch i - BUFFERS has left its slot */
      set_free(&l, i - BUFFERS + 1);
      follow(s->copies, s->is_free[b]);
    }
    copy(&s->p, s->buffers[b], next_batch(&l, i), BATCH, &in);
    record(s->arrived[b], s->copies);
    follow(s->training, s->arrived[b]);
    train(&s->p, s->buffers[b], s->buffers[b] + ROWS * IN, s->w, s->error, ROWS, IN, OUT, rate, &on);
    record(s->is_free[b], s->training);
  }
  end_loader(&l);
  copy(&s->p, s->seen[1], s->w, IN * OUT, &on);
}

static double mean_square(const float *errors) {
  double sum = 0;
  int i;
  for (i = 0; i < ROWS * OUT; ++i) sum += (double)errors[i] * (double)errors[i];
  return sum / (ROWS * OUT);
}

int main(int argc, char **argv) {
  static const pattern_work parts[] = {{"loading", loading, COPIES_IN}, {"training", training, ARITHMETIC}};
  static const pattern_work ways[] = {{"prefetching loader, pipeline", by_pipeline, 0},
                                      {"prefetching loader, by hand", by_hand, 0}};
  static state s;
  sg_submit into;
  sg_stage stage;
  int i;
  pattern_open(&s.p, argc, argv);
  for (i = 0; i < SLOTS; ++i) s.slots[i] = on_host(&s.p, BATCH);
  s.start = on_host(&s.p, IN * OUT);
  memset(s.start, 0, IN * OUT * sizeof(float));
  s.w = placed(&s.p, s.start, IN * OUT);
  s.error = on_device(&s.p, ROWS * OUT);
  s.errors = on_host(&s.p, BATCHES * ROWS * OUT);
  for (i = 0; i < 2; ++i) s.seen[i] = on_host(&s.p, IN * OUT);
  for (i = 0; i < BUFFERS; ++i) {
    s.buffers[i] = on_device(&s.p, BATCH);
    s.arrived[i] = new_event(&s.p);
    s.is_free[i] = new_event(&s.p);
  }
  s.copies = new_stream(&s.p);
  s.training = new_stream(&s.p);
  s.pipeline = new_pipeline(&s.p, BATCH, 0);
  stage = add_stage(s.pipeline, "training", ROWS * OUT, 0, &into); /* w is not the pipeline's: it stays */
  train(&s.p, stage.input, (const float *)stage.input + ROWS * IN, s.w, stage.output, ROWS, IN, OUT, rate, &into);
  pattern_compare(&s.p, &s, parts, 2, ways, 2);
  expect_equal(s.seen[0], s.seen[1], IN * OUT, "the same weights either way");
  expect(mean_square(s.errors + (BATCHES - 1) * ROWS * OUT) < 0.5 * mean_square(s.errors), "it has learned");
  sg_pipeline_release(s.pipeline);
  for (i = 0; i < BUFFERS; ++i) sg_event_release(s.arrived[i]), sg_event_release(s.is_free[i]);
  sg_stream_release(s.copies);
  sg_stream_release(s.training);
  pattern_close(&s.p);
  return 0;
}
