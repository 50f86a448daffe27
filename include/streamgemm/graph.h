/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file graph.h
 * @brief Graphs: submissions that are recorded once and run with one call.
 *
 * A submission whose sg_submit names a graph is validated, planned and recorded, but not run. Recorded submissions have
 * the same order as if they had been submitted: by their streams, and by operands that overlap. A run costs its caller
 * one call. Independent small GEMMs of a graph are batched; on cuda, a graph whose operands are in device memory, but for
 * copies from and to pinned memory, becomes a CUDA graph with the same branches. It keeps the memory that its operations work
 * in, for the life of the graph; one whose plans would keep more than 1 GiB is replayed submission by submission, as on other devices.
 *
 * The caller owns the recorded operands; the rules of job.h apply from the submission of a run to its completion. A run
 * is ordered like any other submission, by all memory that the graph reads and writes, so runs of one graph follow each
 * other.
 *
 * A run completes with the status of the first submission, in the order of recording, that failed in it; its message names
 * the submission. SG_SUBMIT_UNTRACKED of a run concerns other jobs only: its own submissions keep their order.
 * Submissions that read memory which a failed one was to write do not run.
 *
 * Threads: several may record into a graph, change it and run it at once. Each call sees the graph as the calls before it left
 * it, one after the other; a submission's index is its place in that order, so two threads that record at once must ask
 * sg_graph_submission_count in turns to know theirs.
 */
#ifndef STREAMGEMM_GRAPH_H
#define STREAMGEMM_GRAPH_H

#include <streamgemm/gemm.h>
#include <streamgemm/job.h>
#include <streamgemm/operation.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Creates an empty graph. Submissions can be recorded into it until its first run (then SG_STATUS_BUSY).
 * @param[out] out_graph One reference, to be released by sg_graph_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread.
 */
SG_API sg_status sg_graph_create(sg_context *context, sg_graph **out_graph);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_graph_retain(sg_graph *graph);

/**
 * Releases a reference. Its runs in flight continue.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_graph_release(sg_graph *graph);

/**
 * Number of recorded submissions, which is also the index of the next one.
 * @param[out] out_count The number; 0 on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_graph_submission_count(sg_graph *graph, int32_t *out_count);

/**
 * Sets other operands and scalars of a recorded submission, for runs submitted after this call; runs in flight keep
 * their operands. The submission's stream, priority, label and tracking stay. The order of the recorded submissions is determined again.
 * @param index 0 <= index < the number of recorded submissions.
 * @param operation The operation as recorded, except for: of a GEMM data pointers, pointer arrays, the bias' address,
 * strides, batch, alpha and beta; of a group the same of each GEMM; of a copy dst and src; of a scale-and-add data
 * pointers, alpha and beta; of the operations of layers.h data pointers; of the gradients of a linear layer data
 * pointers and accumulate; of a fill the data pointer and value; of a clamp and its gradient data pointers, low and high; of an attention and its gradients data pointers, scale and mask_offset; of a recurrent layer and its gradients data
 * pointers, which stay NULL or not; of a step of SGD or Adam pointers, rate and step; of a triangular or symmetric operation data
 * pointers, beta, and alpha, which stays 0 or not; of all other operations data pointers. Read during the call only.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (also for another operation, a marker,
 * another shape, operands that overlap), SG_STATUS_UNSUPPORTED, SG_STATUS_OUT_OF_MEMORY: the graph is unchanged. Never
 * blocks. Any thread.
 */
SG_API sg_status sg_graph_update(sg_graph *graph, int32_t index, const sg_operation_desc *operation);

/**
 * Runs the graph. The first run, and the first one after a change, also prepares the graph, which takes longer.
 * @param submit,out_job As in sg_gemm_async; submit->plan is not used, submit->graph is NULL. An empty graph
 * succeeds. Recorded priorities apply; recorded submissions of normal priority have the priority of the run.
 * @return As sg_gemm_async. Never blocks on work in flight, unless the context has a job limit. Any thread.
 */
SG_API sg_status sg_graph_run_async(sg_graph *graph, const sg_submit *submit, sg_job **out_job);

/**
 * Runs the graph and waits: sg_graph_run_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread.
 */
SG_API sg_status sg_graph_run(sg_graph *graph, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_GRAPH_H */
