/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file event.h
 * @brief Events: points in streams that other streams and the host can wait for, and measure between.
 */
#ifndef STREAMGEMM_EVENT_H
#define STREAMGEMM_EVENT_H

#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Called once when an event has happened, under the rules of sg_job_callback.
 */
typedef void (*sg_event_callback)(sg_event *event, sg_status status, void *user);

/**
 * Makes an event. It counts as happened until it is recorded.
 * @param[out] out_event One reference, to be released by sg_event_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_event_create(sg_context *context, sg_event **out_event);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_event_retain(sg_event *event);

/**
 * Gives a reference back. Waits in progress go on.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_event_release(sg_event *event);

/**
 * Records the event: it happens when everything submitted to the stream before this call has ended. Recording again
 * moves the event; waits already begun keep to the earlier point.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (of another context),
 * SG_STATUS_OUT_OF_MEMORY, SG_STATUS_SHUTDOWN. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_event_record(sg_event *event, sg_stream *stream);

/**
 * Asks whether the event has happened.
 * @return SG_STATUS_OK, SG_STATUS_NOT_READY or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_event_query(sg_event *event);

/**
 * Waits until the event, as last recorded, has happened.
 * @param timeout_ns As in sg_job_wait.
 * @return SG_STATUS_OK, SG_STATUS_TIMEOUT, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_DEADLOCK.
 * Blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_event_wait(sg_event *event, int64_t timeout_ns);

/**
 * Time between two events that have happened, on the device's clock (virtual on sim devices).
 * @param[out] out_seconds end - start in seconds; 0 on failure.
 * @return SG_STATUS_OK; SG_STATUS_NOT_READY; SG_STATUS_INVALID_HANDLE; SG_STATUS_INVALID_ARGUMENT (never recorded, or of
 * different contexts). Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_event_elapsed(sg_event *start, sg_event *end, double *out_seconds);

/**
 * Calls `callback` once the event, as last recorded, has happened; soon, when it already has.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_event_on_complete(sg_event *event, sg_event_callback callback, void *user);

SG_END_DECLS

#endif /* STREAMGEMM_EVENT_H */
