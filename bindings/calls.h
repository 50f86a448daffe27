/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call for every submission: by number, with the addresses of a descriptor and of submit options, which the
 * wrappers of managed languages lay out themselves (bindings/api). Static functions over the public ABI, compiled into
 * each wrapper. Addresses are int64_t; statuses, outputs and rules are those of the function named in each comment.
 */
#ifndef STREAMGEMM_BINDINGS_CALLS_H
#define STREAMGEMM_BINDINGS_CALLS_H

#ifndef SWIG

#include <stddef.h>
#include <streamgemm/streamgemm.h>

#include "operations.h"

/* Memory at an address. */
static inline void *sg_at(int64_t address) { return (void *)(intptr_t)address; }

/* `on`: a context, or what the call is named after. */
typedef sg_status (*sg_call_function)(void *on, const void *desc, const sg_submit *submit, sg_job **out_job);

static inline sg_status sg_call_gemm_and_wait(void *on, const void *desc, const sg_submit *submit, sg_job **out_job) {
  (void)out_job;
  return sg_gemm((sg_context *)on, (const sg_gemm_desc *)desc, submit);
}

/* `desc`: two numbers, the address of descriptors and how many there are. */
static inline sg_status sg_call_gemm_grouped(void *on, const void *desc, const sg_submit *submit, sg_job **out_job) {
  const int64_t *const group = (const int64_t *)desc;
  return sg_gemm_grouped_async((sg_context *)on, (const sg_gemm_desc *)sg_at(group[0]), (int32_t)group[1], submit,
                               out_job);
}

static inline sg_status sg_call_copy(void *on, const void *desc, const sg_submit *submit, sg_job **out_job) {
  const sg_copy_desc *const d = (const sg_copy_desc *)desc;
  return sg_copy_2d_async((sg_context *)on, d->dst, d->dst_pitch, d->src, d->src_pitch, d->width, d->height, submit,
                          out_job);
}

static inline sg_status sg_call_graph_run(void *on, const void *desc, const sg_submit *submit, sg_job **out_job) {
  (void)desc;
  return sg_graph_run_async((sg_graph *)on, submit, out_job);
}

/* `desc`: two numbers, the addresses of the input and the output. */
static inline sg_status sg_call_pipeline_push(void *on, const void *desc, const sg_submit *submit, sg_job **out_job) {
  const int64_t *const ends = (const int64_t *)desc;
  return sg_pipeline_push_async((sg_pipeline *)on, sg_at(ends[0]), sg_at(ends[1]), submit, out_job);
}

/* `desc`: three numbers, the addresses of the inputs' and of the outputs' addresses, and their number. */
static inline sg_status sg_call_pipeline_push_batches(void *on, const void *desc, const sg_submit *submit,
                                                      sg_job **out_job) {
  const int64_t *const given = (const int64_t *)desc;
  return sg_pipeline_push_batches_async((sg_pipeline *)on, (int32_t)given[2], (const void *const *)sg_at(given[0]),
                                        (void *const *)sg_at(given[1]), submit, NULL, out_job);
}

/* Numbers of calls (bindings/api/calls.py). */
#define SG_CALL_NUMBER(NAME) SG_CALL_NUMBER_##NAME,
enum {
  SG_CALL_NUMBER_gemm_grouped = 1,
  SG_CALL_NUMBER_copy,
  SG_CALL_NUMBER_plan_run,
  SG_CALL_NUMBER_graph_run,
  SG_CALL_NUMBER_pipeline_push,
  SG_CALL_NUMBER_pipeline_push_batches,
  SG_CALL_NUMBER_before_operations = SG_CALL_NUMBER_pipeline_push_batches,
  SG_OPERATIONS(SG_CALL_NUMBER)
};
#undef SG_CALL_NUMBER

static inline sg_gemm_desc sg_gemm_of_linear(const sg_linear_desc *d) {
  sg_gemm_desc gemm = SG_GEMM_DESC_INIT;
  gemm.a = d->x;
  gemm.b = d->w;
  gemm.c = d->y;
  gemm.op_b = d->op_w;
  gemm.compute = d->compute;
  gemm.bias = d->bias;
  gemm.activation = d->activation;
  return gemm;
}

/* What a call submits with a descriptor, for functions that take any operation. `gemm`: room for that of a linear
 * layer. */
static inline sg_operation_desc sg_operation_of(int64_t call, const void *desc, sg_gemm_desc *gemm) {
#define SG_CALL_OPERATION(NAME) SG_OPERATION_OF_##NAME,
  static const sg_operation operations[] = {SG_OPERATIONS(SG_CALL_OPERATION)};
#undef SG_CALL_OPERATION
  sg_operation_desc made = {sizeof made, SG_OPERATION_GEMM, 1, desc};
  if (call == SG_CALL_NUMBER_gemm_grouped) {
    made.desc = sg_at(((const int64_t *)desc)[0]);
    made.count = (int32_t)((const int64_t *)desc)[1];
  } else if (call == SG_CALL_NUMBER_copy) {
    made.operation = SG_OPERATION_COPY;
  } else if (call == SG_CALL_NUMBER_linear) {
    *gemm = sg_gemm_of_linear((const sg_linear_desc *)desc);
    made.desc = gemm;
  } else {
    made.operation = operations[call - SG_CALL_NUMBER_before_operations - 1];
  }
  return made;
}

/* `desc`: two numbers, the number of the operation's call and the address of its descriptor. */
static inline sg_status sg_call_plan_run(void *on, const void *desc, const sg_submit *submit, sg_job **out_job) {
  const int64_t *const given = (const int64_t *)desc;
  sg_gemm_desc gemm;
  const sg_operation_desc operation = sg_operation_of(given[0], sg_at(given[1]), &gemm);
  return sg_plan_run_async((sg_plan *)on, &operation, submit, out_job);
}

#define SG_CALL_OF(NAME)                                                                                          \
  static inline sg_status sg_call_##NAME(void *on, const void *desc, const sg_submit *submit, sg_job **out_job) { \
    return sg_##NAME##_async((sg_context *)on, (const sg_##NAME##_desc *)desc, submit, out_job);                  \
  }
SG_OPERATIONS(SG_CALL_OF)
#undef SG_CALL_OF

#define SG_CALL_ENTRY(NAME) sg_call_##NAME,
static const sg_call_function sg_calls[] = {sg_call_gemm_and_wait,
                                            sg_call_gemm_grouped,
                                            sg_call_copy,
                                            sg_call_plan_run,
                                            sg_call_graph_run,
                                            sg_call_pipeline_push,
                                            sg_call_pipeline_push_batches,
                                            SG_OPERATIONS(SG_CALL_ENTRY)};
#undef SG_CALL_ENTRY

#endif /* SWIG */

/* The call of a number (bindings/api/calls.py) with a descriptor and an sg_submit. A recording makes no job. */
static inline sg_status sg_call(int32_t call, int64_t on, int64_t desc, int64_t submit, sg_job **out_job) {
  const sg_submit *const order = (const sg_submit *)sg_at(submit);
  return sg_calls[call](sg_at(on), sg_at(desc), order, order->graph ? NULL : out_job);
}

/* sg_plan_create for what a call submits with a descriptor. */
static inline sg_status sg_call_plan_create(sg_context *context, int32_t call, int64_t desc,
                                            const sg_plan_options *options, sg_plan **out_plan) {
  sg_gemm_desc gemm;
  const sg_operation_desc operation = sg_operation_of(call, sg_at(desc), &gemm);
  return sg_plan_create(context, &operation, options, out_plan);
}

/* sg_context_supports; SG_STATUS_UNSUPPORTED is 0. */
static inline sg_status sg_call_supports(sg_context *context, int32_t call, int64_t desc, int32_t *out_supports) {
  sg_gemm_desc gemm;
  const sg_operation_desc operation = sg_operation_of(call, sg_at(desc), &gemm);
  const sg_status status = sg_context_supports(context, &operation);
  *out_supports = status == SG_STATUS_OK;
  return status == SG_STATUS_UNSUPPORTED ? SG_STATUS_OK : status;
}

/* sg_log_set to standard error: a callback would run on threads, and under locks, of the library. */
static inline sg_status sg_call_log_set(sg_log_level level) { return sg_log_set(level, NULL, NULL); }

/* sg_graph_update with what a call submits with a descriptor. */
static inline sg_status sg_call_graph_update(sg_graph *graph, int32_t index, int32_t call, int64_t desc) {
  sg_gemm_desc gemm;
  const sg_operation_desc operation = sg_operation_of(call, sg_at(desc), &gemm);
  return sg_graph_update(graph, index, &operation);
}

/* sg_pipeline_add_stage. */
static inline sg_status sg_call_add_stage(sg_pipeline *pipeline, int64_t desc, sg_stage *out_stage) {
  return sg_pipeline_add_stage(pipeline, (const sg_stage_desc *)sg_at(desc), out_stage);
}

/* sg_queue_next_batch into memory at an address. */
static inline sg_status sg_call_next_batch(sg_queue *queue, int64_t completions, int32_t capacity, int64_t timeout_ns,
                                           int32_t *out_count) {
  return sg_queue_next_batch(queue, (sg_completion *)sg_at(completions), sizeof(sg_completion), capacity, timeout_ns,
                             out_count);
}

/* sg_queue_create for a wrapper: it keeps its jobs, and the program observes a failure when it asks. */
static inline sg_status sg_call_queue_create(sg_context *context, sg_queue **out_queue) {
  const sg_queue_options options = {sizeof options, SG_QUEUE_JOBS_NONE, 0};
  return sg_queue_create(context, &options, out_queue);
}

#endif /* STREAMGEMM_BINDINGS_CALLS_H */
