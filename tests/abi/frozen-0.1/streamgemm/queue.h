/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file queue.h
 * @brief Completion queues: how event loops and managed runtimes learn that jobs have ended.
 *
 * A submission names a queue and a 64-bit tag (sg_submit); when its job ends, one sg_completion with that tag is in the
 * queue. One thread of a managed runtime blocks in sg_queue_next_batch, so no thread of the library ever calls into the
 * runtime; an event loop watches sg_queue_fd. A submission reserves its place, so posting never fails.
 */
#ifndef STREAMGEMM_QUEUE_H
#define STREAMGEMM_QUEUE_H

#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** One job's end. */
typedef struct sg_completion {
  uint64_t tag;         /**< The submission's. */
  sg_status status;     /**< The job's. */
  uint32_t reserved;    /**< 0. */
  char message[240];    /**< Text of a failure, perhaps cut; "" after success. */
} sg_completion;

/**
 * Makes a queue.
 * @param[out] out_queue One reference, to be released by sg_queue_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_queue_create(sg_context *context, sg_queue **out_queue);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_queue_retain(sg_queue *queue);

/**
 * Gives a reference back. Jobs in flight that name the queue keep it until they have posted.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_queue_release(sg_queue *queue);

/**
 * Takes completions out of the queue, oldest first; waits for the first one.
 * @param[out] out_completions Receives up to `capacity` completions.
 * @param capacity >= 1.
 * @param timeout_ns As in sg_job_wait.
 * @param[out] out_count Number received; 0 unless the call returns SG_STATUS_OK.
 * @return SG_STATUS_OK; SG_STATUS_TIMEOUT; SG_STATUS_CANCELLED (the queue was closed and is empty);
 * SG_STATUS_INVALID_ARGUMENT; SG_STATUS_INVALID_HANDLE. Blocks. Any thread; each completion goes to one. Since 0.1.
 */
SG_API sg_status sg_queue_next_batch(sg_queue *queue, sg_completion *out_completions, int32_t capacity,
                                     int64_t timeout_ns, int32_t *out_count);

/**
 * Closes the queue: waits in sg_queue_next_batch end, now and later, once it is empty. Jobs may still post. For a
 * runtime that wants its thread back.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_queue_close(sg_queue *queue);

/**
 * A file descriptor that polls readable while completions are waiting or the queue is closed. Do not read it; take the
 * completions out by sg_queue_next_batch.
 * @param[out] out_fd It belongs to the queue and is closed with it; -1 on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_BACKEND_FAILURE (no descriptors
 * are left). Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_queue_fd(sg_queue *queue, int32_t *out_fd);

SG_END_DECLS

#endif /* STREAMGEMM_QUEUE_H */
