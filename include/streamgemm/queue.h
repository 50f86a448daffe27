/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file queue.h
 * @brief Completion queues: how event loops and managed runtimes observe completed jobs.
 *
 * A submission names a queue and a 64-bit tag (sg_submit). When its job completes, one sg_completion with that tag is
 * posted to the queue. A managed runtime lets one thread block in sg_queue_next_batch, so no thread of the library calls
 * into the runtime; an event loop watches sg_queue_fd. Posting needs no memory and never fails.
 *
 * A queue may be named by jobs of any context. A completion that has not been taken keeps its job's context open until it
 * is taken or the queue is destroyed.
 */
#ifndef STREAMGEMM_QUEUE_H
#define STREAMGEMM_QUEUE_H

#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Which completions of a queue bring their job. */
typedef enum sg_queue_jobs SG_ENUM_INT {
  SG_QUEUE_JOBS_NONE = 0,   /**< None: for a program that keeps its jobs by their tags. */
  SG_QUEUE_JOBS_FAILED = 1, /**< Those of jobs that did not succeed, for the whole message of the failure. */
  SG_QUEUE_JOBS_ALL = 2     /**< Each, for its statistics for instance. */
} sg_queue_jobs;

/** Options of sg_queue_create. */
typedef struct sg_queue_options {
  size_t struct_size; /**< sizeof(sg_queue_options), set by SG_QUEUE_OPTIONS_INIT. */
  sg_queue_jobs jobs; /**< Which completions bring their job. */
  int32_t observes;   /**< 1: a completion that is taken counts as the application's observation of a failure (job.h). 0, for a
                           runtime that takes completions before its application asks for them: it does not, and the runtime
                           calls sg_job_query, sg_job_wait or sg_job_message when the application asks. SG_QUEUE_OPTIONS_INIT
                           sets 1. */
} sg_queue_options;

/** Initial value of an sg_queue_options. */
#define SG_QUEUE_OPTIONS_INIT {sizeof(sg_queue_options), SG_QUEUE_JOBS_NONE, 1}

/** The completion of one job. Its size is an argument of sg_queue_next_batch, so later versions may append members. */
typedef struct sg_completion {
  uint64_t tag;      /**< The tag of the submission. */
  sg_job *job;       /**< One reference to the job, to be released by sg_job_release, if the queue's options ask for it; NULL
                          otherwise, or if no memory is left for it. */
  sg_status status;  /**< The status of the job. */
  uint32_t reserved; /**< 0. */
  char message[240]; /**< Text of a failure, possibly truncated; "" after success. */
} sg_completion;

/**
 * Creates a queue.
 * @param context The queue keeps it open, and a wait polls its device for a short time before it sleeps, as sg_job_wait does.
 * Jobs of other contexts may name the queue too. NULL, for an event loop or a runtime that serves several: contexts may be
 * opened and closed while the queue exists, and it keeps none of them open; a wait sleeps until a completion is posted.
 * @param options Options; NULL for the defaults. Read during the call only.
 * @param[out] out_queue One reference, to be released by sg_queue_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread.
 */
SG_API sg_status sg_queue_create(sg_context *context, const sg_queue_options *options, sg_queue **out_queue);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_queue_retain(sg_queue *queue);

/**
 * Releases a reference. Jobs in flight that name the queue keep it alive until they have posted. Completions that have not
 * been taken are dropped with the queue.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_queue_release(sg_queue *queue);

/**
 * Removes completions from the queue, oldest first; waits for the first one.
 * @param[out] out_completions Receives up to `capacity` completions, each completion_size bytes behind the one before.
 * @param completion_size sizeof(sg_completion), as the caller was compiled.
 * @param capacity >= 1.
 * @param timeout_ns As in sg_job_wait.
 * @param[out] out_count Number received; 0 unless the call returns SG_STATUS_OK.
 * @return SG_STATUS_OK; SG_STATUS_TIMEOUT; SG_STATUS_CANCELLED (the queue was closed and is empty);
 * SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE. Blocks. Any thread; each completion is received once.
 */
SG_API sg_status sg_queue_next_batch(sg_queue *queue, sg_completion *out_completions, uint64_t completion_size,
                                     int32_t capacity, int64_t timeout_ns, int32_t *out_count);

/**
 * Closes the queue: from now on sg_queue_next_batch returns SG_STATUS_CANCELLED instead of waiting when the queue is
 * empty. Jobs may still post. A runtime uses it to end the thread that waits.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_queue_close(sg_queue *queue);

/**
 * A file descriptor that is readable (for poll) while the queue has completions or is closed. Do not read from it: call
 * sg_queue_next_batch.
 * @param[out] out_fd The descriptor; it belongs to the queue and is closed with it. -1 on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_BACKEND_FAILURE (no descriptors
 * are left). Never blocks. Any thread.
 */
SG_API sg_status sg_queue_fd(sg_queue *queue, int32_t *out_fd);

SG_END_DECLS

#endif /* STREAMGEMM_QUEUE_H */
