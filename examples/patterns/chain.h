/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that pass through stages on the device: by a pipeline, and by hand with a stream for each stage and for each
 * direction of copies, two buffers behind each, and events that say when a buffer is ready and when it has been read.
 */
#ifndef EXAMPLES_CHAIN_H
#define EXAMPLES_CHAIN_H

#include "pattern.h"

enum { CHAIN_STAGES = 3, CHAIN_BATCHES = 48, CHAIN_LANES = CHAIN_STAGES + 2 };

/* Computes `out` from `in`: submits operations, or records them. */
typedef void (*chain_function)(const pattern *p, const void *model, const float *in, float *out,
                               const sg_submit *submit);

typedef struct chain_stage {
  const char *name;
  chain_function run;
  size_t output; /* floats */
} chain_stage;

typedef struct chain {
  pattern p;
  const void *model;
  void (*start)(const pattern *p, const void *model); /* sets what batches change to its first state; NULL: nothing */
  chain_stage stages[CHAIN_STAGES];
  int stage_count;
  size_t input, output;                /* floats of a batch, of a result; output: of the last stage */
  float *inputs, *outputs[2];          /* on the host: of all batches, after each way */
  float *buffers[CHAIN_STAGES + 1][2]; /* behind the copy in, behind each stage */
  sg_stream *lanes[CHAIN_LANES];       /* copy in, stages, copy out */
  sg_event *ready[CHAIN_LANES][2], *read[CHAIN_LANES][2]; /* of the buffers behind a lane */
  sg_pipeline *pipeline;
} chain;

/* After its stages, input and model are set, and before its inputs are filled. */
static inline void chain_open(chain *c) {
  int i, b;
  sg_submit into;
  c->output = c->stages[c->stage_count - 1].output;
  c->inputs = on_host(&c->p, CHAIN_BATCHES * c->input);
  for (b = 0; b < 2; ++b) c->outputs[b] = on_host(&c->p, CHAIN_BATCHES * c->output);
  for (i = 0; i < c->stage_count + 2; ++i) {
    c->lanes[i] = new_stream(&c->p);
    for (b = 0; b < 2; ++b) {
      c->ready[i][b] = new_event(&c->p);
      c->read[i][b] = new_event(&c->p);
      if (i <= c->stage_count) c->buffers[i][b] = on_device(&c->p, i == 0 ? c->input : c->stages[i - 1].output);
    }
  }
  c->pipeline = new_pipeline(&c->p, c->input, 0);
  for (i = 0; i < c->stage_count; ++i) {
    const sg_stage stage = add_stage(c->pipeline, c->stages[i].name, c->stages[i].output, 0, &into);
    c->stages[i].run(&c->p, c->model, stage.input, stage.output, &into);
  }
}

static inline void chain_close(chain *c) {
  int i, b;
  sg_pipeline_release(c->pipeline);
  for (i = 0; i < c->stage_count + 2; ++i) {
    sg_stream_release(c->lanes[i]);
    for (b = 0; b < 2; ++b) sg_event_release(c->ready[i][b]), sg_event_release(c->read[i][b]);
  }
  pattern_close(&c->p);
}

static inline void chain_start(const chain *c) {
  if (c->start) c->start(&c->p, c->model);
  check(sg_context_synchronize(c->p.context, SG_FOREVER), "sg_context_synchronize");
}

/* Lane i of a batch: 0 is the copy in, then the stages, the last one the copy out. */
static inline void chain_lane(const chain *c, int i, int batch, int way, const sg_submit *submit) {
  const int b = batch % 2;
  if (i == 0)
    copy(&c->p, c->buffers[0][b], c->inputs + (size_t)batch * c->input, c->input, submit);
  else if (i <= c->stage_count)
    c->stages[i - 1].run(&c->p, c->model, c->buffers[i - 1][b], c->buffers[i][b], submit);
  else
    copy(&c->p, c->outputs[way] + (size_t)batch * c->output, c->buffers[i - 1][b], c->output, submit);
}

static inline void chain_by_pipeline(void *user) {
  chain *const c = user;
  int i;
  chain_start(c);
  for (i = 0; i < CHAIN_BATCHES; ++i)
    check(sg_pipeline_push_async(c->pipeline, c->inputs + (size_t)i * c->input, c->outputs[0] + (size_t)i * c->output,
                                 NULL, NULL),
          "sg_pipeline_push_async");
}

static inline void chain_by_hand(void *user) {
  chain *const c = user;
  int batch, i;
  chain_start(c);
  for (batch = 0; batch < CHAIN_BATCHES; ++batch)
    for (i = 0; i < c->stage_count + 2; ++i) {
      const int b = batch % 2;
      const sg_submit on = alone_on(c->lanes[i]);
      if (i > 0) follow(c->lanes[i], c->ready[i - 1][b]);
      if (i <= c->stage_count && batch >= 2) follow(c->lanes[i], c->read[i][b]); /* by the lane behind, of batch - 2 */
      chain_lane(c, i, batch, 1, &on);
      if (i <= c->stage_count) record(c->ready[i][b], c->lanes[i]);
      if (i > 0) record(c->read[i - 1][b], c->lanes[i]);
    }
}

static inline void chain_alone(chain *c, int lane) {
  int batch;
  chain_start(c);
  for (batch = 0; batch < CHAIN_BATCHES; ++batch) chain_lane(c, lane, batch, 1, NULL);
}
static inline void chain_copies_in(void *user) { chain_alone(user, 0); }
static inline void chain_stage_1(void *user) { chain_alone(user, 1); }
static inline void chain_stage_2(void *user) { chain_alone(user, 2); }
static inline void chain_stage_3(void *user) { chain_alone(user, 3); }
static inline void chain_copies_out(void *user) { chain_alone(user, ((chain *)user)->stage_count + 1); }

static inline void chain_compare(chain *c, const char *name) {
  void (*const stages[CHAIN_STAGES])(void *) = {chain_stage_1, chain_stage_2, chain_stage_3};
  char of_pipeline[64], by_hand[64];
  pattern_work parts[CHAIN_LANES] = {{"copies in", chain_copies_in, COPIES_IN}};
  const pattern_work ways[] = {{of_pipeline, chain_by_pipeline, 0}, {by_hand, chain_by_hand, 0}};
  int i;
  snprintf(of_pipeline, sizeof of_pipeline, "%s, pipeline", name);
  snprintf(by_hand, sizeof by_hand, "%s, by hand", name);
  for (i = 0; i < c->stage_count; ++i) {
    parts[i + 1].name = c->stages[i].name;
    parts[i + 1].run = stages[i];
  }
  parts[c->stage_count + 1].name = "copies out";
  parts[c->stage_count + 1].run = chain_copies_out;
  parts[c->stage_count + 1].uses = COPIES_OUT;
  pattern_compare(&c->p, c, parts, c->stage_count + 2, ways, 2);
  expect_equal(c->outputs[0], c->outputs[1], CHAIN_BATCHES * c->output, "the same results either way");
}

#endif
