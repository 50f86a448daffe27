/* SPDX-License-Identifier: Apache-2.0 */
/* A frozen encoder beside a trained decoder: the encoder's weights do not change, so it encodes the next batch while
 * the decoder takes its step on this one. */
#include "chain.h"

enum { ROWS = 128, IN = 512, FEATURES = 256, OUT = 64 };

typedef struct model {
  float *first, *second; /* of the encoder */
  float *decoder, *start;
} model;

/* A batch is x, then the targets; the features of x, then the targets; the decoder's errors before its step. */
static void encode(const pattern *p, const void *user, const float *in, float *out, const sg_submit *submit) {
  const model *const m = user;
  float *const hidden = out + ROWS * (FEATURES + OUT);
  layer(p, in, m->first, hidden, ROWS, IN, FEATURES, submit);
  layer(p, hidden, m->second, out, ROWS, FEATURES, FEATURES, submit);
  copy(p, out + ROWS * FEATURES, in + ROWS * IN, ROWS * OUT, submit);
}

static void decode(const pattern *p, const void *user, const float *in, float *out, const sg_submit *submit) {
  const model *const m = user;
  train(p, in, in + ROWS * FEATURES, m->decoder, out, ROWS, FEATURES, OUT, 2e-4, submit);
}

static void start(const pattern *p, const void *user) {
  const model *const m = user;
  copy(p, m->decoder, m->start, FEATURES * OUT, NULL);
}

static double mean_square(const float *errors) {
  double sum = 0;
  int i;
  for (i = 0; i < ROWS * OUT; ++i) sum += (double)errors[i] * (double)errors[i];
  return sum / (ROWS * OUT);
}

int main(int argc, char **argv) {
  static chain c;
  static model m;
  int batch, i;
  pattern_open(&c.p, argc, argv);
  m.first = placed(&c.p, filled_host(&c.p, IN * FEATURES, 1), IN * FEATURES);
  m.second = placed(&c.p, filled_host(&c.p, FEATURES * FEATURES, 2), FEATURES * FEATURES);
  m.start = on_host(&c.p, FEATURES * OUT);
  memset(m.start, 0, FEATURES * OUT * sizeof(float));
  m.decoder = on_device(&c.p, FEATURES * OUT);
  c.model = &m;
  c.start = start;
  c.stages[0] = (chain_stage){"encoder", encode, ROWS * (FEATURES + OUT + FEATURES)};
  c.stages[1] = (chain_stage){"decoder", decode, ROWS * OUT};
  c.stage_count = 2;
  c.input = ROWS * (IN + OUT);
  chain_open(&c);
  for (batch = 0; batch < CHAIN_BATCHES; ++batch) {
    float *const x = c.inputs + (size_t)batch * c.input;
    fill(x, ROWS * IN, 100u + (unsigned)batch);
    for (i = 0; i < ROWS * IN; ++i) x[i] *= 0.02f; /* features of about 1 */
    for (i = 0; i < ROWS * OUT; ++i) x[ROWS * IN + i] = 1;
  }
  chain_compare(&c, "frozen encoder");
  expect(mean_square(c.outputs[0] + (CHAIN_BATCHES - 1) * ROWS * OUT) < 0.5 * mean_square(c.outputs[0]),
         "it has learned");
  chain_close(&c);
  return 0;
}
