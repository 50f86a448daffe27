/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass of batch n + 1 beside the backward pass of batch n: gradients of a network of two layers are summed
 * over the parts of a large batch, so the weights stay while its parts pass. By hand there are two streams, two buffers
 * for what the forward pass keeps, and events; the library finds the same order in the memory. */
#include "pattern.h"

enum { PARTS = 48, ROWS = 128, IN = 256, HIDDEN = 128, OUT = 64, SLOTS = 2 };

typedef struct state {
  pattern p;
  float *inputs; /* on the host: of each part x, then the targets */
  float *w1, *w2, *dw1, *dw2;
  float *x[SLOTS], *h[SLOTS], *error[SLOTS], *dh; /* kept by the forward pass; of the backward pass */
  float *seen[2];
  sg_stream *copies, *forwards, *backwards;
  sg_event *arrived[SLOTS], *computed[SLOTS], *is_free[SLOTS];
} state;

enum { PART = ROWS * (IN + OUT) };

static sg_gemm_desc product(const float *a, sg_transpose op_a, int64_t a_rows, int64_t a_cols, const float *b,
                            sg_transpose op_b, int64_t b_rows, int64_t b_cols, float *c) {
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = matrix(a, a_rows, a_cols);
  desc.b = matrix(b, b_rows, b_cols);
  desc.op_a = op_a;
  desc.op_b = op_b;
  desc.c = matrix(c, op_a == SG_TRANSPOSE_N ? a_rows : a_cols, op_b == SG_TRANSPOSE_N ? b_cols : b_rows);
  return desc;
}

/* h = relu(x w1), error = h w2 - t. */
static void forward(state *s, int part, const sg_submit *submit) {
  const int b = part % SLOTS;
  sg_gemm_desc second = product(s->h[b], SG_TRANSPOSE_N, ROWS, HIDDEN, s->w2, SG_TRANSPOSE_N, HIDDEN, OUT, s->error[b]);
  sg_axpby_desc minus = SG_AXPBY_DESC_INIT;
  minus.a = matrix(s->x[b] + ROWS * IN, ROWS, OUT);
  minus.c = second.c;
  minus.alpha.re = -1;
  minus.beta.re = 1;
  layer(&s->p, s->x[b], s->w1, s->h[b], ROWS, IN, HIDDEN, submit);
  check(sg_gemm_async(s->p.context, &second, submit, NULL), "sg_gemm_async");
  check(sg_axpby_async(s->p.context, &minus, submit, NULL), "sg_axpby_async");
}

/* dw2 += h^T error, dh = (error w2^T) where h > 0, dw1 += x^T dh. */
static void backward(state *s, int part, const sg_submit *submit) {
  const int b = part % SLOTS;
  sg_gemm_desc dw2 = product(s->h[b], SG_TRANSPOSE_T, ROWS, HIDDEN, s->error[b], SG_TRANSPOSE_N, ROWS, OUT, s->dw2);
  sg_gemm_desc dh = product(s->error[b], SG_TRANSPOSE_N, ROWS, OUT, s->w2, SG_TRANSPOSE_T, HIDDEN, OUT, s->dh);
  sg_gemm_desc dw1 = product(s->x[b], SG_TRANSPOSE_T, ROWS, IN, s->dh, SG_TRANSPOSE_N, ROWS, HIDDEN, s->dw1);
  sg_elementwise_desc where = SG_ELEMENTWISE_DESC_INIT;
  where.function = SG_FUNCTION_RELU_GRADIENT;
  where.a = where.c = dh.c;
  where.b = matrix(s->h[b], ROWS, HIDDEN);
  dw1.beta.re = dw2.beta.re = 1;
  check(sg_gemm_async(s->p.context, &dw2, submit, NULL), "sg_gemm_async");
  check(sg_gemm_async(s->p.context, &dh, submit, NULL), "sg_gemm_async");
  check(sg_elementwise_async(s->p.context, &where, submit, NULL), "sg_elementwise_async");
  check(sg_gemm_async(s->p.context, &dw1, submit, NULL), "sg_gemm_async");
}

static void copy_in(state *s, int part, const sg_submit *submit) {
  copy(&s->p, s->x[part % SLOTS], s->inputs + (size_t)part * PART, PART, submit);
}

static void start(state *s) {
  sg_axpby_desc zero = SG_AXPBY_DESC_INIT;
  zero.alpha.re = zero.beta.re = 0;
  zero.a = zero.c = matrix(s->dw1, IN, HIDDEN);
  check(sg_axpby(s->p.context, &zero, NULL), "sg_axpby");
  zero.a = zero.c = matrix(s->dw2, HIDDEN, OUT);
  check(sg_axpby(s->p.context, &zero, NULL), "sg_axpby");
}

static void finish(state *s, int way) {
  check(sg_context_synchronize(s->p.context, SG_FOREVER), "sg_context_synchronize");
  copy(&s->p, s->seen[way], s->dw1, IN * HIDDEN, NULL);
  copy(&s->p, s->seen[way] + IN * HIDDEN, s->dw2, HIDDEN * OUT, NULL);
}

static void copies(void *user) {
  int part;
  for (part = 0; part < PARTS; ++part) copy_in(user, part, NULL);
}
static void forward_passes(void *user) {
  int part;
  for (part = 0; part < PARTS; ++part) forward(user, part, NULL);
}
static void backward_passes(void *user) {
  int part;
  for (part = 0; part < PARTS; ++part) backward(user, part, NULL);
}

static void by_memory(void *user) {
  int part;
  start(user);
  for (part = 0; part < PARTS; ++part) {
    copy_in(user, part, NULL);
    forward(user, part, NULL);
    backward(user, part, NULL);
  }
  finish(user, 0);
}

static void by_hand(void *user) {
  state *const s = user;
  const sg_submit in = alone_on(s->copies), ahead = alone_on(s->forwards), back = alone_on(s->backwards);
  int part;
  start(s);
  for (part = 0; part < PARTS; ++part) {
    const int b = part % SLOTS;
    if (part >= SLOTS) follow(s->copies, s->is_free[b]);
    copy_in(s, part, &in);
    record(s->arrived[b], s->copies);
    follow(s->forwards, s->arrived[b]); /* and so behind is_free */
    forward(s, part, &ahead);
    record(s->computed[b], s->forwards);
    follow(s->backwards, s->computed[b]);
    backward(s, part, &back);
    record(s->is_free[b], s->backwards);
  }
  finish(s, 1);
}

int main(int argc, char **argv) {
  static const pattern_work parts[] = {{"copies", copies, COPIES_IN},
                                       {"forward", forward_passes, ARITHMETIC},
                                       {"backward", backward_passes, ARITHMETIC}};
  static const pattern_work ways[] = {{"forward beside backward", by_memory, 0},
                                      {"forward beside backward, by hand", by_hand, 0}};
  static state s;
  int i;
  pattern_open(&s.p, argc, argv);
  s.inputs = filled_host(&s.p, PARTS * PART, 1);
  s.w1 = placed(&s.p, filled_host(&s.p, IN * HIDDEN, 2), IN * HIDDEN);
  s.w2 = placed(&s.p, filled_host(&s.p, HIDDEN * OUT, 3), HIDDEN * OUT);
  s.dw1 = on_device(&s.p, IN * HIDDEN);
  s.dw2 = on_device(&s.p, HIDDEN * OUT);
  s.dh = on_device(&s.p, ROWS * HIDDEN);
  s.copies = new_stream(&s.p);
  s.forwards = new_stream(&s.p);
  s.backwards = new_stream(&s.p);
  for (i = 0; i < SLOTS; ++i) {
    s.x[i] = on_device(&s.p, PART);
    s.h[i] = on_device(&s.p, ROWS * HIDDEN);
    s.error[i] = on_device(&s.p, ROWS * OUT);
    s.arrived[i] = new_event(&s.p);
    s.computed[i] = new_event(&s.p);
    s.is_free[i] = new_event(&s.p);
  }
  for (i = 0; i < 2; ++i) s.seen[i] = on_host(&s.p, IN * HIDDEN + HIDDEN * OUT);
  start(&s);
  pattern_compare(&s.p, &s, parts, 3, ways, 2);
  expect_equal(s.seen[0], s.seen[1], IN * HIDDEN, "the same gradients of w1 either way");
  expect_equal(s.seen[0] + IN * HIDDEN, s.seen[1] + IN * HIDDEN, HIDDEN * OUT, "the same gradients of w2 either way");
  for (i = 0; i < SLOTS; ++i)
    sg_event_release(s.arrived[i]), sg_event_release(s.computed[i]), sg_event_release(s.is_free[i]);
  sg_stream_release(s.copies);
  sg_stream_release(s.forwards);
  sg_stream_release(s.backwards);
  pattern_close(&s.p);
  return 0;
}
