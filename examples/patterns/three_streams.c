/* SPDX-License-Identifier: Apache-2.0 */
/* Preprocess, encode, decode: features of 13 channels from images, a score of each image for each of a few resources,
 * and the resources' allocation to images. Three stages, each on a stream of its own by hand. */
#include "chain.h"

enum { IMAGES = 8, CHANNELS = 3, SIZE = 32, FEATURES = 13, HALF = SIZE / 2, SCORES = 16 };
enum { IMAGE = CHANNELS * SIZE * SIZE, FEATURE = FEATURES * HALF * HALF };

typedef struct model {
  float *filters;   /* 13 x 3 x 5 x 5 */
  float *scoring;   /* features x scores */
  float *resources; /* scores x scores */
} model;

static void preprocess(const pattern *p, const void *user, const float *in, float *out, const sg_submit *submit) {
  const model *const m = user;
  sg_conv2d_desc desc = SG_CONV2D_DESC_INIT;
  desc.x.data = (void *)in;
  desc.y.data = out;
  desc.w = m->filters;
  desc.images = IMAGES;
  desc.channels = CHANNELS;
  desc.height = desc.width = SIZE;
  desc.out_channels = FEATURES;
  desc.windows.kernel_h = desc.windows.kernel_w = 5;
  desc.windows.stride_h = desc.windows.stride_w = 2;
  desc.windows.pad_top = desc.windows.pad_bottom = desc.windows.pad_left = desc.windows.pad_right = 2;
  desc.windows.pad_bottom = desc.windows.pad_right = 1;
  desc.activation = SG_ACTIVATION_RELU;
  check(sg_conv2d_async(p->context, &desc, submit, NULL), "sg_conv2d_async");
}

static void encode(const pattern *p, const void *user, const float *in, float *out, const sg_submit *submit) {
  const model *const m = user;
  sg_softmax_desc softmax = SG_SOFTMAX_DESC_INIT;
  layer(p, in, m->scoring, out, IMAGES, FEATURE, SCORES, submit);
  softmax.x = softmax.y = matrix(out, IMAGES, SCORES);
  check(sg_softmax_async(p->context, &softmax, submit, NULL), "sg_softmax_async");
}

static void decode(const pattern *p, const void *user, const float *in, float *out, const sg_submit *submit) {
  const model *const m = user;
  sg_gemm_desc desc = SG_GEMM_DESC_INIT;
  desc.a = matrix(in, IMAGES, SCORES);
  desc.b = matrix(m->resources, SCORES, SCORES);
  desc.c = matrix(out, IMAGES, SCORES);
  check(sg_gemm_async(p->context, &desc, submit, NULL), "sg_gemm_async");
}

int main(int argc, char **argv) {
  static chain c;
  static model m;
  float *resources;
  int i, j;
  pattern_open(&c.p, argc, argv);
  m.filters = placed(&c.p, filled_host(&c.p, FEATURES * CHANNELS * 25, 1), FEATURES * CHANNELS * 25);
  m.scoring = placed(&c.p, filled_host(&c.p, FEATURE * SCORES, 2), FEATURE * SCORES);
  resources = on_host(&c.p, SCORES * SCORES);
  for (i = 0; i < SCORES * SCORES; ++i) resources[i] = i / SCORES == i % SCORES ? 100.0f : 0.0f;
  m.resources = placed(&c.p, resources, SCORES * SCORES);
  c.model = &m;
  c.stages[0] = (chain_stage){"preprocess", preprocess, IMAGES * FEATURE};
  c.stages[1] = (chain_stage){"encode", encode, IMAGES * SCORES};
  c.stages[2] = (chain_stage){"decode", decode, IMAGES * SCORES};
  c.stage_count = 3;
  c.input = IMAGES * IMAGE;
  chain_open(&c);
  fill(c.inputs, CHAIN_BATCHES * c.input, 3);
  chain_compare(&c, "three streams");
  for (i = 0; i < CHAIN_BATCHES * IMAGES; ++i) { /* 100 of each resource are allocated by the scores, whose sum is 1 */
    double sum = 0;
    for (j = 0; j < SCORES; ++j) sum += (double)c.outputs[0][i * SCORES + j];
    expect(fabs(sum - 100) < 1e-2, "the sum of an allocation");
  }
  chain_close(&c);
  return 0;
}
