/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file graph.h
 * @brief Graphs: submissions recorded once and run with one call.
 *
 * A submission whose sg_submit names a graph is recorded instead of run: it is checked and planned, and nothing else. The
 * order between recorded submissions is the one that they would have had: by their streams, and by operands that overlap.
 * A run then costs one submission. Independent small products of a graph go out as one call; on cuda, graphs whose
 * operands lie in device memory become CUDA graphs with the same branches.
 *
 * Recorded operands stay the caller's, under job.h's rules from a run's submission to its end. A run is ordered like any
 * other submission, by all that the graph reads and writes, so runs of one graph follow each other.
 *
 * A run ends as its first failed part; its message says which one. Parts that need what a failed one would have written do
 * not run.
 */
#ifndef STREAMGEMM_GRAPH_H
#define STREAMGEMM_GRAPH_H

#include <streamgemm/gemm.h>
#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Makes an empty graph. Submissions are recorded into it until its first run (then SG_STATUS_BUSY).
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
 * Gives a reference back. Its runs in flight go on.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_release(sg_graph *graph);

/**
 * Number of submissions recorded so far: also the index that the next one will have.
 * @param[out] out_count The number; 0 on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_size(sg_graph *graph, int32_t *out_count);

/**
 * Gives a recorded product other pointers, scalars, strides and items for the runs submitted after this call.
 * @param index 0 <= index < size; of a submission by sg_gemm_async or a function that is shorthand for it.
 * @param desc As recorded but for data, pointer arrays, the bias' address, strides, batch, alpha and beta; read during
 * the call only. The order between the recorded submissions is found anew.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (also: another shape),
 * SG_STATUS_UNSUPPORTED, SG_STATUS_OUT_OF_MEMORY; the graph is then as it was. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_set_gemm(sg_graph *graph, int32_t index, const sg_gemm_desc *desc);

/**
 * Gives a recorded copy other addresses for the runs submitted after this call; its sizes and pitches stay.
 * @param index 0 <= index < size; of a submission by sg_copy_async or sg_copy_2d_async.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY; the graph is then as
 * it was. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_set_copy(sg_graph *graph, int32_t index, void *dst, const void *src);

/**
 * Runs the graph. The first run, and the first after a change, prepares what runs need, which takes longer.
 * @param submit,out_job As in sg_gemm_async; submit->plan is not used, submit->graph is NULL. A graph with nothing in it
 * succeeds. Recorded priorities hold; recorded submissions of normal priority have the run's.
 * @return As sg_gemm_async. Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_graph_run_async(sg_graph *graph, const sg_submit *submit, sg_job **out_job);

SG_END_DECLS

#endif /* STREAMGEMM_GRAPH_H */
