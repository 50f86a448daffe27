/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file event.h
 * @brief Events: points in streams, for other streams and the host to wait for and to measure time between.
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
 * Creates an event. Until it is recorded it counts as happened.
 * @param[out] out_event One reference, to be released by sg_event_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread.
 */
SG_API sg_status sg_event_create(sg_context *context, sg_event **out_event);

/**
 * Wraps a native event (a cudaEvent_t on cuda devices), so that streams of the library and native streams wait for each
 * other without the host.
 *
 * The wrapper represents the native event as last recorded, by anyone, at the time of each call: sg_stream_wait_event,
 * sg_event_query, sg_event_wait and sg_event_on_complete test the native event when they are called. sg_event_record
 * records the native event, under the rules of sg_event_native; for this it must belong to the context's device. An event
 * of another device can be waited for. sg_event_elapsed refuses wrappers.
 *
 * While the native event is recorded in a stream that is being captured, it cannot be used here.
 * @param native The native event, not NULL. The caller owns it and keeps it while calls use the wrapper. It may be
 * destroyed while streams wait for it, under the device's own rules.
 * @param[out] out_event One reference, to be released by sg_event_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (NULL, or the device does not know the event),
 * SG_STATUS_UNSUPPORTED (the device has no native events), SG_STATUS_OUT_OF_MEMORY. Never blocks. Any thread.
 */
SG_API sg_status sg_event_wrap(sg_context *context, void *native, sg_event **out_event);

/**
 * The native event of an event (a cudaEvent_t on cuda devices). Native streams may wait for it and the program may query
 * it; it has no time stamp.
 *
 * It happens when the event does: from this call on, sg_event_record records it too. This call and those of
 * sg_event_record return when the native event is recorded on the device. After GEMMs in device memory, copies between
 * device and pinned memory and graphs of these, that is as soon as these are on the device; after other jobs, when they
 * have completed. So these calls may block, whatever the documentation of sg_event_record says. If the event was never
 * recorded, the native event counts as happened, as in CUDA.
 * @param[out] out_native The native event. The program neither destroys nor records it. It is valid until the last
 * sg_event_release of the event; waits that are already enqueued continue. For a wrapper it is the wrapped event. NULL on
 * failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_UNSUPPORTED (the device has no
 * native events), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BACKEND_FAILURE, SG_STATUS_SHUTDOWN. May block. Any thread.
 */
SG_API sg_status sg_event_native(sg_event *event, void **out_native);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_event_retain(sg_event *event);

/**
 * Releases a reference. Waits in progress continue.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_event_release(sg_event *event);

/**
 * Records the event: it happens when every job submitted to the stream before this call has completed. Recording it again
 * moves the event; waits that have begun refer to the earlier point.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (of another context),
 * SG_STATUS_OUT_OF_MEMORY, SG_STATUS_SHUTDOWN; with a native event SG_STATUS_BACKEND_FAILURE too. Never blocks, except for
 * events with a native one (sg_event_native, sg_event_wrap). Any thread.
 */
SG_API sg_status sg_event_record(sg_event *event, sg_stream *stream);

/**
 * Tests whether the event has happened.
 * @return SG_STATUS_OK, SG_STATUS_NOT_READY or SG_STATUS_INVALID_HANDLE; for a wrapper SG_STATUS_BACKEND_FAILURE too.
 * Never blocks. Any thread.
 */
SG_API sg_status sg_event_query(sg_event *event);

/**
 * Waits until the event, as last recorded, has happened.
 * @param timeout_ns As in sg_job_wait.
 * @return SG_STATUS_OK, SG_STATUS_TIMEOUT, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_DEADLOCK; for a
 * wrapper SG_STATUS_BACKEND_FAILURE too.
 * Blocks. Any thread.
 */
SG_API sg_status sg_event_wait(sg_event *event, int64_t timeout_ns);

/**
 * Time between two events that have happened, on the device's clock (virtual on sim devices).
 * @param[out] out_seconds end - start in seconds; 0 on failure.
 * @return SG_STATUS_OK; SG_STATUS_NOT_READY; SG_STATUS_INVALID_HANDLE; SG_STATUS_INVALID_ARGUMENT (never recorded, of
 * different contexts, or a wrapper of a native event). Never blocks. Any thread.
 */
SG_API sg_status sg_event_elapsed(sg_event *start, sg_event *end, double *out_seconds);

/**
 * Calls `callback` once, when the event, as last recorded, has happened; soon, if it has already.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread.
 */
SG_API sg_status sg_event_on_complete(sg_event *event, sg_event_callback callback, void *user);

SG_END_DECLS

#endif /* STREAMGEMM_EVENT_H */
