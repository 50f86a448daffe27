/* SPDX-License-Identifier: Apache-2.0 */
/* A stream for each request: many requests, each a copy in, two layers and a copy out, of which none waits for another.
 * The library needs no streams for that: jobs follow each other by the memory that they use. */
#include "pattern.h"

enum { REQUESTS = 32, ROWS = 128, IN = 512, OUT = 256 };

typedef struct state {
  pattern p;
  float *first, *second; /* weights */
  float *inputs[REQUESTS], *outputs[2][REQUESTS], *x[REQUESTS], *hidden[REQUESTS], *y[REQUESTS];
} state;

static void copy_in(state *s, int i, const sg_submit *submit) { copy(&s->p, s->x[i], s->inputs[i], ROWS * IN, submit); }
static void compute(state *s, int i, const sg_submit *submit) {
  layer(&s->p, s->x[i], s->first, s->hidden[i], ROWS, IN, IN, submit);
  layer(&s->p, s->hidden[i], s->second, s->y[i], ROWS, IN, OUT, submit);
}
static void copy_out(state *s, int i, int way, const sg_submit *submit) {
  copy(&s->p, s->outputs[way][i], s->y[i], ROWS * OUT, submit);
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
  state *const s = user;
  int i;
  for (i = 0; i < REQUESTS; ++i) {
    sg_stream *const own = new_stream(&s->p);
    const sg_submit on = alone_on(own);
    copy_in(s, i, &on);
    compute(s, i, &on);
    copy_out(s, i, 1, &on);
    sg_stream_release(own); /* what is on it completes */
  }
}

int main(int argc, char **argv) {
  static const pattern_work parts[] = {
      {"copies in", copies_in, COPIES_IN}, {"layers", layers, ARITHMETIC}, {"copies out", copies_out, COPIES_OUT}};
  static const pattern_work ways[] = {{"requests, by their memory", by_memory, 0},
                                      {"requests, a stream each", by_streams, 0}};
  static state s;
  int i;
  pattern_open(&s.p, argc, argv);
  s.first = placed(&s.p, filled_host(&s.p, IN * IN, 1), IN * IN);
  s.second = placed(&s.p, filled_host(&s.p, IN * OUT, 2), IN * OUT);
  for (i = 0; i < REQUESTS; ++i) {
    s.inputs[i] = filled_host(&s.p, ROWS * IN, 3u + (unsigned)i);
    s.x[i] = on_device(&s.p, ROWS * IN);
    s.hidden[i] = on_device(&s.p, ROWS * IN);
    s.y[i] = on_device(&s.p, ROWS * OUT);
    s.outputs[0][i] = on_host(&s.p, ROWS * OUT);
    s.outputs[1][i] = on_host(&s.p, ROWS * OUT);
  }
  pattern_compare(&s.p, &s, parts, 3, ways, 2);
  for (i = 0; i < REQUESTS; ++i)
    expect_equal(s.outputs[0][i], s.outputs[1][i], ROWS * OUT, "the same results either way");
  pattern_close(&s.p);
  return 0;
}
