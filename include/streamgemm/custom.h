/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file custom.h
 * @brief Custom operations: functions of the application's, such as its own kernels or calls of another library, as jobs.
 *
 * The application says which memory a custom operation reads and writes; then it follows and precedes other jobs like any of the
 * library's, also in graphs and in the stages of pipelines.
 *
 * On a CUDA device the function enqueues work on a native stream, and the operation is complete when that work is. On the
 * other devices there is no native stream: the function does the work before it returns.
 *
 * A refused call accesses nothing.
 */
#ifndef STREAMGEMM_CUSTOM_H
#define STREAMGEMM_CUSTOM_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Limit of the operands of a custom operation. One may cover several arrays: it is a range of addresses. */
#define SG_MAX_CUSTOM_OPERANDS 4

/** How an operation accesses memory. Since 0.2. */
typedef enum sg_access SG_ENUM_INT {
  SG_ACCESS_READ = 1,      /**< Reads it. */
  SG_ACCESS_WRITE = 2,     /**< Writes all of it, whatever it contains. */
  SG_ACCESS_READ_WRITE = 3 /**< Reads it, or writes only parts of it. */
} sg_access;

/** Memory that a custom operation accesses. Since 0.2. */
typedef struct sg_custom_operand {
  void *data;           /**< The first byte. The function gets device and pinned memory as it is, and pageable memory copied (memory.h). */
  uint64_t bytes;       /**< > 0. */
  sg_access access;     /**< What the function does with it. */
  uint32_t reserved[3]; /**< 0. */
} sg_custom_operand;

/** What a function gets. Since 0.2. */
typedef struct sg_custom_call {
  size_t struct_size;     /**< sizeof(sg_custom_call) of the library. */
  void *native_stream;    /**< cuda: the cudaStream_t to enqueue on, whose device is current. Otherwise NULL: the work is to
                               be done when the function returns. */
  void *const *operands;  /**< The addresses of the operands, in the descriptor's order, each that of this run: in a
                               pipeline those of the batch's buffers. With a simulated device those of the host memory that
                               it stores device memory in: the function may access them. Valid during the call. */
  int32_t operand_count;  /**< Number of operands. */
  uint32_t reserved;      /**< 0. */
  char *message;          /**< For the reason of a failure: at most message_size bytes with the NUL. Empty at first. */
  uint64_t message_size;  /**< Of message, in bytes. */
} sg_custom_call;

/** Initial value of an sg_custom_call, for an application that calls its function itself, as in a test of it. */
#define SG_CUSTOM_CALL_INIT \
  { sizeof(sg_custom_call), NULL, NULL, 0, 0, NULL, 0 }

/**
 * Does, or enqueues, the work of a custom operation. Jobs that it follows are complete, or precede it on the native stream.
 *
 * It runs on any thread: of the device, of a submitter, or of one that waits for a job; of several jobs possibly at once. On
 * cuda it must not wait, since commands of other jobs are enqueued by the same thread; on the cpu it occupies a worker
 * meanwhile. It must not leave by longjmp; a C++ exception fails the job with SG_STATUS_BACKEND_FAILURE and its text. A call
 * of this library that would wait returns SG_STATUS_DEADLOCK there, and a blocking operation is then not submitted: the job
 * itself occupies the thread that others may need.
 * @param call Valid during the call.
 * @param user sg_custom_desc.user.
 * @return SG_STATUS_OK, or the negative status that the job fails with. What it has enqueued by then is waited for.
 */
typedef sg_status (*sg_custom_function)(const sg_custom_call *call, void *user);

/** Descriptor of a custom operation. Since 0.2. */
typedef struct sg_custom_desc {
  size_t struct_size;                /**< sizeof(sg_custom_desc), set by SG_CUSTOM_DESC_INIT. */
  sg_custom_function function;       /**< Called once for each run. */
  void *user;                        /**< Passed to the function; the caller's. Valid until the job has completed; of a recorded
                                          operation until the graph or the pipeline is released and its jobs have completed. */
  const sg_custom_operand *operands; /**< operand_count operands; read during sg_custom_async only. */
  int32_t operand_count;             /**< From 1 to SG_MAX_CUSTOM_OPERANDS. */
  int32_t compute_units;             /**< Multiprocessors that it occupies, for predictions; 0: all; -1: none, as of a transfer between
                                          devices. */
  double seconds;                    /**< Expected time on the device, for predictions and for simulated devices; 0: that of
                                          the operands' bytes at the rate of the device's memory. */
  sg_release_callback release;       /**< Called with `user` when the library will not use it again: after the job, or of a recorded
                                          operation after the graph or the pipeline and its jobs; NULL: nothing is called. An update
                                          (sg_graph_update) takes nothing: the function and `user` are those recorded. */
} sg_custom_desc;

/** Initial value of an sg_custom_desc. */
#define SG_CUSTOM_DESC_INIT \
  { sizeof(sg_custom_desc), NULL, NULL, NULL, 0, 0, 0, NULL }

/**
 * Submits a custom operation and returns at once.
 *
 * It runs after the jobs that write what it accesses, or read what it writes, and those that follow wait for it likewise
 * (sg_gemm_async). An operand that is written overlaps no other. A simulated device that stores no data (timing only) does
 * not call the function. If the job is cancelled before it starts, the function is not called.
 * @param context The context that runs it.
 * @param desc The function and its operands; read during the call only.
 * @param submit Order, priority, completion queue, graph; NULL for the defaults. Its plan is ignored. A graph with custom
 * operations is replayed one by one, not as a CUDA graph.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job limit),
 * SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_custom_async(sg_context *context, const sg_custom_desc *desc, const sg_submit *submit,
                                 sg_job **out_job);

/**
 * Submits a custom operation and waits for it: sg_custom_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_custom(sg_context *context, const sg_custom_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_CUSTOM_H */
