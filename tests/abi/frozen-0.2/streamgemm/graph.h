/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file graph.h
 * @brief Graphs: submissions that are recorded once and run with one call.
 *
 * A submission whose sg_submit names a graph is validated, planned and recorded, but not run. Recorded submissions have the
 * same order as if they had been submitted: by their streams, and by operands that overlap. A run costs its caller one
 * call. Independent small GEMMs of a graph are batched; on cuda, graphs of GEMMs and copies whose operands are in device memory
 * become CUDA graphs with the same branches.
 *
 * The caller owns the recorded operands; the rules of job.h apply from the submission of a run to its completion. A run is
 * ordered like any other submission, by all memory that the graph reads and writes, so runs of one graph follow each other.
 *
 * A run completes with the status of its first failed part; its message names the part. Parts that read what a failed one
 * was to write do not run.
 */
#ifndef STREAMGEMM_GRAPH_H
#define STREAMGEMM_GRAPH_H

#include <streamgemm/gemm.h>
#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Creates an empty graph. Submissions can be recorded into it until its first run (then SG_STATUS_BUSY).
 * @param[out] out_graph One reference, to be released by sg_graph_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_create(sg_context *context, sg_graph **out_graph);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_retain(sg_graph *graph);

/**
 * Releases a reference. Its runs in flight continue.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_release(sg_graph *graph);

/**
 * Number of recorded submissions, which is also the index of the next one.
 * @param[out] out_count The number; 0 on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_submission_count(sg_graph *graph, int32_t *out_count);

/**
 * Sets other pointers, scalars, strides and items of a recorded GEMM, for runs submitted after this call.
 * @param index 0 <= index < the number of recorded submissions; a submission by sg_gemm_async or a shorthand of it.
 * @param desc As recorded except for data pointers, pointer arrays, the bias' address, strides, batch, alpha and beta. Read
 * during the call only. The order of the recorded submissions is determined again.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (also for another shape),
 * SG_STATUS_UNSUPPORTED, SG_STATUS_OUT_OF_MEMORY: the graph is unchanged. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_set_gemm(sg_graph *graph, int32_t index, const sg_gemm_desc *desc);

/**
 * Sets other addresses of a recorded copy, for runs submitted after this call; its sizes and pitches stay.
 * @param index 0 <= index < the number of recorded submissions; a submission by sg_copy_async or sg_copy_2d_async.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY: the graph is
 * unchanged. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_set_copy(sg_graph *graph, int32_t index, void *dst, const void *src);

/**
 * Runs the graph. The first run, and the first one after a change, also prepares the graph, which takes longer.
 * @param submit,out_job As in sg_gemm_async; submit->plan is not used, submit->graph is NULL. An empty graph
 * succeeds. Recorded priorities apply; recorded submissions of normal priority have the priority of the run.
 * @return As sg_gemm_async. Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_run_async(sg_graph *graph, const sg_submit *submit, sg_job **out_job);

SG_END_DECLS

#endif /* STREAMGEMM_GRAPH_H */
