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
 * Wraps a native event (a cudaEvent_t on cuda devices), so that streams of the library and the program's own wait for each
 * other without the host between them.
 *
 * The wrapper stands for the native event as it was last recorded, by whomever, when it is used: sg_stream_wait_event,
 * sg_event_query, sg_event_wait and sg_event_on_complete ask the native event at the time of the call. sg_event_record
 * records the native event, under the rules of sg_event_native; for that it must be of the context's device, while an event
 * of another device can be waited for. sg_event_elapsed refuses wrappers.
 *
 * While the native event is recorded in a stream that is being captured it cannot be used here.
 * @param native The native event, not NULL. It stays the caller's and outlives the wrapper's use in calls; it may be
 * destroyed while streams wait for it, as the device's own rules say.
 * @param[out] out_event One reference, to be released by sg_event_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (NULL, or the device does not know the event),
 * SG_STATUS_UNSUPPORTED (the device has no native events), SG_STATUS_OUT_OF_MEMORY. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_event_wrap(sg_context *context, void *native, sg_event **out_event);

/**
 * The native event under an event (a cudaEvent_t on cuda devices), which the program's own streams may wait for and which
 * it may query; it has no time.
 *
 * It happens when the event does, and moves with it: from this call on sg_event_record records it too. This call and those
 * return when the device has it: at once behind products of matrices in device memory, copies between device and pinned
 * memory and graphs of these, once they are on the device; behind anything else when that has ended. They thus may block,
 * whatever sg_event_record's own documentation says. Of an event that was never recorded it counts as happened, as for CUDA.
 * @param[out] out_native The native event, which the program does not destroy or record itself. It is valid until the last
 * sg_event_release of the event; waits already enqueued then go on. Of a wrapper it is the event that it wraps. NULL on
 * failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_UNSUPPORTED (the device has no
 * native events), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BACKEND_FAILURE, SG_STATUS_SHUTDOWN. May block. Any thread. Since 0.2.
 */
SG_API sg_status sg_event_native(sg_event *event, void **out_native);

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
 * SG_STATUS_OUT_OF_MEMORY, SG_STATUS_SHUTDOWN; with a native event SG_STATUS_BACKEND_FAILURE too. Never blocks, but for
 * events with a native one (sg_event_native, sg_event_wrap). Any thread. Since 0.1.
 */
SG_API sg_status sg_event_record(sg_event *event, sg_stream *stream);

/**
 * Asks whether the event has happened.
 * @return SG_STATUS_OK, SG_STATUS_NOT_READY or SG_STATUS_INVALID_HANDLE; of a wrapper SG_STATUS_BACKEND_FAILURE too.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_event_query(sg_event *event);

/**
 * Waits until the event, as last recorded, has happened.
 * @param timeout_ns As in sg_job_wait.
 * @return SG_STATUS_OK, SG_STATUS_TIMEOUT, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_DEADLOCK; of a
 * wrapper SG_STATUS_BACKEND_FAILURE too.
 * Blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_event_wait(sg_event *event, int64_t timeout_ns);

/**
 * Time between two events that have happened, on the device's clock (virtual on sim devices).
 * @param[out] out_seconds end - start in seconds; 0 on failure.
 * @return SG_STATUS_OK; SG_STATUS_NOT_READY; SG_STATUS_INVALID_HANDLE; SG_STATUS_INVALID_ARGUMENT (never recorded, of
 * different contexts, or a wrapper of a native event). Never blocks. Any thread. Since 0.1.
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
