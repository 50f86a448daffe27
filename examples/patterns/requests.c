/* SPDX-License-Identifier: Apache-2.0 */
/* A stream for each request, and round-robin over a pool: many requests, each a copy in, a layer and a copy out. With
 * as many slots as requests none waits for another; in a pool they use a few slots one after the other, each a stream
 * with buffers of its own, so that no event is needed. The library needs no streams for either: jobs follow each other
 * by the memory that they use. */
#include "pattern.h"

enum { REQUESTS = 64, POOL = 8, ROWS = 128, IN = 512, OUT = 128 };

typedef struct state {
  pattern p;
  int slots;
  float *w, *inputs, *outputs[2];   /* on the host: of all requests, after each way */
  float *x[REQUESTS], *y[REQUESTS]; /* of the slots */
  sg_stream *streams[REQUESTS];
} state;

static void copy_in(const state *s, int i, const sg_submit *submit) {
  copy(&s->p, s->x[i % s->slots], s->inputs + (size_t)i * ROWS * IN, ROWS * IN, submit);
}
static void compute(const state *s, int i, const sg_submit *submit) {
  layer(&s->p, s->x[i % s->slots], s->w, s->y[i % s->slots], ROWS, IN, OUT, submit);
}
static void copy_out(const state *s, int i, int way, const sg_submit *submit) {
  copy(&s->p, s->outputs[way] + (size_t)i * ROWS * OUT, s->y[i % s->slots], ROWS * OUT, submit);
}

static void copies_in(void *user) {
  int i;
  for (i = 0; i < REQUESTS; ++i) copy_in(user, i, NULL);
}
static void layers(void *user) {
  int i;
  for (i = 0; i < REQUESTS; ++i) compute(user, i, NULL);
}
static void copies_out(void *user) {
  int i;
  for (i = 0; i < REQUESTS; ++i) copy_out(user, i, 0, NULL);
}

static void by_memory(void *user) {
  int i;
  for (i = 0; i < REQUESTS; ++i) {
    copy_in(user, i, NULL);
    compute(user, i, NULL);
    copy_out(user, i, 0, NULL);
  }
}

static void by_streams(void *user) {
  const state *const s = user;
  int i;
  for (i = 0; i < REQUESTS; ++i) {
    const sg_submit on = alone_on(s->streams[i % s->slots]);
    copy_in(s, i, &on);
    compute(s, i, &on);
    copy_out(s, i, 1, &on);
  }
}

static void run(state *s, int slots, const char *memory, const char *streams) {
  static const pattern_work parts[] = {
      {"copies in", copies_in, COPIES_IN}, {"layers", layers, ARITHMETIC}, {"copies out", copies_out, COPIES_OUT}};
  const pattern_work ways[] = {{memory, by_memory, 0}, {streams, by_streams, 0}};
  s->slots = slots;
  pattern_compare(&s->p, s, parts, 3, ways, 2);
  expect_equal(s->outputs[0], s->outputs[1], REQUESTS * ROWS * OUT, "the same results either way");
}

int main(int argc, char **argv) {
  static state s;
  int i;
  pattern_open(&s.p, argc, argv);
  s.w = placed(&s.p, filled_host(&s.p, IN * OUT, 1), IN * OUT);
  s.inputs = filled_host(&s.p, REQUESTS * ROWS * IN, 2);
  for (i = 0; i < 2; ++i) s.outputs[i] = on_host(&s.p, REQUESTS * ROWS * OUT);
  for (i = 0; i < REQUESTS; ++i) {
    s.x[i] = on_device(&s.p, ROWS * IN);
    s.y[i] = on_device(&s.p, ROWS * OUT);
    s.streams[i] = new_stream(&s.p);
  }
  run(&s, REQUESTS, "requests, by their memory", "requests, a stream each");
  run(&s, POOL, "pool, by its memory", "pool of streams");
  for (i = 0; i < REQUESTS; ++i) sg_stream_release(s.streams[i]);
  pattern_close(&s.p);
  return 0;
}
