/* SPDX-License-Identifier: Apache-2.0 */
/* Round-robin over a pool: tasks take turns with a few streams, each with buffers of its own. On a stream a task
 * follows the one before it in its buffers, so no event is needed; and without streams the library orders tasks by
 * these buffers. */
#include "pattern.h"

enum { TASKS = 64, POOL = 8, ROWS = 128, IN = 512, OUT = 128 };

typedef struct state {
  pattern p;
  float *w, *inputs, *outputs[2]; /* on the host: of all tasks */
  float *x[POOL], *y[POOL];
  sg_stream *streams[POOL];
} state;

static void copy_in(state *s, int task, const sg_submit *submit) {
  copy(&s->p, s->x[task % POOL], s->inputs + (size_t)task * ROWS * IN, ROWS * IN, submit);
}
static void compute(state *s, int task, const sg_submit *submit) {
  layer(&s->p, s->x[task % POOL], s->w, s->y[task % POOL], ROWS, IN, OUT, submit);
}
static void copy_out(state *s, int task, int way, const sg_submit *submit) {
  copy(&s->p, s->outputs[way] + (size_t)task * ROWS * OUT, s->y[task % POOL], ROWS * OUT, submit);
}

static void copies_in(void *user) {
  int i;
  for (i = 0; i < TASKS; ++i) copy_in(user, i, NULL);
}
static void layers(void *user) {
  int i;
  for (i = 0; i < TASKS; ++i) compute(user, i, NULL);
}
static void copies_out(void *user) {
  int i;
  for (i = 0; i < TASKS; ++i) copy_out(user, i, 0, NULL);
}

static void by_memory(void *user) {
  int i;
  for (i = 0; i < TASKS; ++i) {
    copy_in(user, i, NULL);
    compute(user, i, NULL);
    copy_out(user, i, 0, NULL);
  }
}

static void by_streams(void *user) {
  state *const s = user;
  int i;
  for (i = 0; i < TASKS; ++i) {
    const sg_submit on = alone_on(s->streams[i % POOL]);
    copy_in(s, i, &on);
    compute(s, i, &on);
    copy_out(s, i, 1, &on);
  }
}

int main(int argc, char **argv) {
  static const pattern_work parts[] = {
      {"copies in", copies_in, COPIES_IN}, {"layers", layers, ARITHMETIC}, {"copies out", copies_out, COPIES_OUT}};
  static const pattern_work ways[] = {{"pool, by its memory", by_memory, 0}, {"pool of streams", by_streams, 0}};
  static state s;
  int i;
  pattern_open(&s.p, argc, argv);
  s.w = placed(&s.p, filled_host(&s.p, IN * OUT, 1), IN * OUT);
  s.inputs = filled_host(&s.p, TASKS * ROWS * IN, 2);
  for (i = 0; i < 2; ++i) s.outputs[i] = on_host(&s.p, TASKS * ROWS * OUT);
  for (i = 0; i < POOL; ++i) {
    s.x[i] = on_device(&s.p, ROWS * IN);
    s.y[i] = on_device(&s.p, ROWS * OUT);
    s.streams[i] = new_stream(&s.p);
  }
  pattern_compare(&s.p, &s, parts, 3, ways, 2);
  expect_equal(s.outputs[0], s.outputs[1], TASKS * ROWS * OUT, "the same results either way");
  for (i = 0; i < POOL; ++i) sg_stream_release(s.streams[i]);
  pattern_close(&s.p);
  return 0;
}
