/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation on the device beside training: samples are mirrored and partly covered by operations of the library, so
 * that a batch crosses the link as it is stored; the next batch is augmented while the model takes its step on this
 * one. */
#include "chain.h"

enum { ROWS = 64, PIXELS = 512, OUT = 32 };

typedef struct model {
  int32_t *mirrored; /* indices: rows of a transposed batch, in reverse for half of the samples */
  float *w, *start;
} model;

/* A batch is x, a mask of ones and zeros, the targets; augmented: mirrored x times the mask, and the targets. */
static void augment(const pattern *p, const void *user, const float *in, float *out, const sg_submit *submit) {
  const model *const m = user;
  sg_gather_desc mirror = SG_GATHER_DESC_INIT;
  sg_elementwise_desc cover = SG_ELEMENTWISE_DESC_INIT;
  mirror.table = matrix(in, ROWS * PIXELS, 1);
  mirror.y = matrix(out, ROWS * PIXELS, 1);
  mirror.indices = m->mirrored;
  cover.a = matrix(out, ROWS, PIXELS);
  cover.b = matrix(in + ROWS * PIXELS, ROWS, PIXELS);
  cover.c = cover.a;
  cover.function = SG_FUNCTION_MULTIPLY;
  check(sg_gather_async(p->context, &mirror, submit, NULL), "sg_gather_async");
  check(sg_elementwise_async(p->context, &cover, submit, NULL), "sg_elementwise_async");
  copy(p, out + ROWS * PIXELS, in + 2 * ROWS * PIXELS, ROWS * OUT, submit);
}

static void step(const pattern *p, const void *user, const float *in, float *out, const sg_submit *submit) {
  const model *const m = user;
  train(p, in, in + ROWS * PIXELS, m->w, out, ROWS, PIXELS, OUT, 1e-3, submit);
}

static void start(const pattern *p, const void *user) {
  const model *const m = user;
  copy(p, m->w, m->start, PIXELS * OUT, NULL);
}

int main(int argc, char **argv) {
  static chain c;
  static model m;
  int32_t *indices;
  int batch, i;
  pattern_open(&c.p, argc, argv);
  indices = (int32_t *)on_host(&c.p, ROWS * PIXELS);
  for (i = 0; i < ROWS * PIXELS; ++i)
    indices[i] = i / PIXELS % 2 == 0 ? i : i / PIXELS * PIXELS + (PIXELS - 1 - i % PIXELS);
  m.mirrored = (int32_t *)placed(&c.p, (const float *)indices, ROWS * PIXELS);
  m.start = filled_host(&c.p, PIXELS * OUT, 1);
  m.w = on_device(&c.p, PIXELS * OUT);
  c.model = &m;
  c.start = start;
  c.stages[0] = (chain_stage){"augmentation", augment, ROWS * (PIXELS + OUT)};
  c.stages[1] = (chain_stage){"training", step, ROWS * OUT};
  c.stage_count = 2;
  c.input = ROWS * (2 * PIXELS + OUT);
  chain_open(&c);
  for (batch = 0; batch < CHAIN_BATCHES; ++batch) {
    float *const x = c.inputs + (size_t)batch * c.input;
    fill(x, c.input, 10u + (unsigned)batch);
    for (i = 0; i < ROWS * PIXELS; ++i) x[ROWS * PIXELS + i] = i % 8 == batch % 8 ? 0.0f : 1.0f;
  }
  chain_compare(&c, "augmentation");
  for (i = 0; i < 4 * OUT; ++i) { /* the first batch's errors: w has its first values */
    const float *const x = c.inputs + i / OUT * PIXELS, *const mask = x + ROWS * PIXELS;
    const float target = c.inputs[2 * ROWS * PIXELS + i];
    double sum = 0;
    int k;
    for (k = 0; k < PIXELS; ++k)
      sum += (double)x[i / OUT % 2 == 0 ? k : PIXELS - 1 - k] * (double)mask[k] * (double)m.start[k * OUT + i % OUT];
    expect(fabs(sum - (double)target - (double)c.outputs[0][i]) < 1e-3, "an augmented sample's error");
  }
  chain_close(&c);
  return 0;
}
