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

static inline sg_status sg_call_plan_run(void *on, const void *desc, const sg_submit *submit, sg_job **out_job) {
  const sg_operation_desc gemm = {sizeof gemm, SG_OPERATION_GEMM, 1, desc};
  return sg_plan_run_async((sg_plan *)on, &gemm, submit, out_job);
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

#define SG_CALL_OF(NAME)                                                                                          \
  static inline sg_status sg_call_##NAME(void *on, const void *desc, const sg_submit *submit, sg_job **out_job) { \
    return sg_##NAME##_async((sg_context *)on, (const sg_##NAME##_desc *)desc, submit, out_job);                  \
  }
SG_OPERATIONS(SG_CALL_OF)
#undef SG_CALL_OF

#define SG_CALL_ENTRY(NAME) sg_call_##NAME,
static const sg_call_function sg_calls[] = {
    sg_call_gemm_and_wait, sg_call_gemm_grouped,        sg_call_copy, sg_call_plan_run, sg_call_graph_run,
    sg_call_pipeline_push, SG_OPERATIONS(SG_CALL_ENTRY)};
#undef SG_CALL_ENTRY

#endif /* SWIG */

/* The call of a number (bindings/api/calls.py) with a descriptor and an sg_submit. A recording makes no job. */
static inline sg_status sg_call(int32_t call, int64_t on, int64_t desc, int64_t submit, sg_job **out_job) {
  const sg_submit *const order = (const sg_submit *)sg_at(submit);
  return sg_calls[call](sg_at(on), sg_at(desc), order, order->graph ? NULL : out_job);
}

/* sg_plan_create. */
static inline sg_status sg_call_plan_create(sg_context *context, int64_t desc, const sg_plan_options *options,
                                            sg_plan **out_plan) {
  const sg_operation_desc gemm = {sizeof gemm, SG_OPERATION_GEMM, 1, sg_at(desc)};
  return sg_plan_create(context, &gemm, options, out_plan);
}

/* sg_log_set to standard error: a callback would run on threads, and under locks, of the library. */
static inline sg_status sg_call_log_set(sg_log_level level) { return sg_log_set(level, NULL, NULL); }

/* sg_graph_update. */
static inline sg_status sg_call_graph_update(sg_graph *graph, int32_t index, sg_operation operation, int64_t desc) {
  const sg_operation_desc given = {sizeof given, operation, 1, sg_at(desc)};
  return sg_graph_update(graph, index, &given);
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
