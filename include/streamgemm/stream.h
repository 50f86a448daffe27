/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file stream.h
 * @brief Streams: orders of submissions.
 *
 * What is submitted to one stream runs in that order. Streams are cheap: they order work, while the device's own streams
 * are few and shared. They come from a pool of the context and go back to it.
 *
 * A stream's share of the device can be limited: its products then use so many compute units (streaming multiprocessors,
 * or cores) at most, and leave the others to other streams' work. On cpu a product of the stream is cut for that many
 * workers, and one after the other runs; on sim virtual time passes accordingly, and what others compute meanwhile has the
 * rest. On cuda the stream gets a partition of the GPU, where the driver has green contexts (CUDA 12.5 and later): its
 * kernels run on the multiprocessors of that partition only, which no other partition of the process has, and whatever runs
 * in streams without a limit runs there as well. Where there is none to be had, cuBLAS plans its kernels for that many
 * multiprocessors, which is no more than a wish: many of its kernels for f32 and f64 use all of them nevertheless. Copies,
 * and jobs on no stream, are not limited; the sums of a product that is cut over K are by a partition only. Products of
 * a partition run at the priority that its stream was acquired with. A graph that a submission to such a stream is
 * recorded in is replayed submission by submission.
 */
#ifndef STREAMGEMM_STREAM_H
#define STREAMGEMM_STREAM_H

#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Takes a stream from the context's pool.
 * @param priority -1 low, 0 normal, 1 high: what its submissions have unless they say otherwise.
 * @param[out] out_stream One reference, to be released by sg_stream_release; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_stream_acquire(sg_context *context, int32_t priority, sg_stream **out_stream);

/**
 * Takes a stream whose products use a part of the device only.
 * @param priority As in sg_stream_acquire.
 * @param compute_units Compute units to use at most: >= 1 (sg_device_info.compute_units says how many there are); 0: all.
 * A partition holds whole groups of multiprocessors (8 of them on Hopper), as many as fit and no other partition of the
 * process has; of fewer than a group, of all that the device has, where every group is taken, and beside 8 other partitions
 * of the context none is made.
 * @param[out] out_stream One reference, to be released by sg_stream_release; NULL on failure. sg_stream_compute_units says
 * what was granted, and sg_stream_is_partition whether it is a partition. The multiprocessors are free for another partition
 * when the last reference is gone and what was submitted to the stream has ended. A partition takes some 40 MB of the
 * device's memory.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_UNSUPPORTED (the device cannot be
 * told; the message says why), SG_STATUS_OUT_OF_MEMORY. Never blocks, but to make a partition takes some milliseconds. Any
 * thread. Since 0.2.
 */
SG_API sg_status sg_stream_acquire_limited(sg_context *context, int32_t priority, int32_t compute_units,
                                           sg_stream **out_stream);

/**
 * The compute units that the stream's products may use.
 * @param[out] out_compute_units What was granted, at most what the device has; 0: all, there is no limit.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_stream_compute_units(sg_stream *stream, int32_t *out_compute_units);

/**
 * Asks whether the stream's compute units are set aside for it: a partition of the GPU.
 * @param[out] out_is_partition 1: its products run on those units and on no others, and no other partition of the process
 * has them; 0: there is no limit, or it is kept otherwise, as the head of this file says.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_stream_is_partition(sg_stream *stream, int32_t *out_is_partition);

/**
 * Wraps a native stream (a cudaStream_t on cuda devices): what is submitted to the wrapper runs after what the caller has
 * enqueued in the native stream before the call, and before what the caller enqueues there after the call has returned.
 *
 * For that, a submission to the wrapper, an event recorded in it and a wait for an event return when the native stream has
 * them. A product of matrices in device memory, a copy between device and pinned memory and a graph of these go into the
 * stream at once, unless they have to wait for earlier work that is not on the device yet. Anything else runs beside the
 * native stream, after its work so far, and the submission returns when it has ended. A submission to the wrapper thus may
 * block, whatever the function's own documentation says.
 *
 * A stream of a green context may be wrapped: what goes into it keeps to that context's multiprocessors.
 *
 * While the native stream is being captured nothing may be submitted to the wrapper.
 * @param native The native stream, or NULL for the device's default stream. It stays the caller's, and must be of the
 * context's device and outlive the wrapper, whose last sg_stream_release waits until what was submitted to it has ended.
 * @param[out] out_stream One reference, to be released by sg_stream_release; NULL on failure. Its priority is 0.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_UNSUPPORTED (the device has no
 * native streams), SG_STATUS_BUSY (32 are wrapped), SG_STATUS_OUT_OF_MEMORY. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_stream_wrap(sg_context *context, void *native, sg_stream **out_stream);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_stream_retain(sg_stream *stream);

/**
 * Gives a reference back; the last one returns the stream to the pool. Its work in flight goes on.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks, but for the last one of a wrapper. Any thread. Since 0.1.
 */
SG_API sg_status sg_stream_release(sg_stream *stream);

/**
 * The priority that the stream was acquired with.
 * @param[out] out_priority -1, 0 or 1.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_stream_priority(sg_stream *stream, int32_t *out_priority);

/**
 * Asks whether everything submitted to the stream has ended.
 * @return SG_STATUS_OK, SG_STATUS_NOT_READY or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_stream_query(sg_stream *stream);

/**
 * Waits until everything submitted to the stream before this call has ended, well or badly; of a wrapper, everything in the
 * native stream.
 * @param timeout_ns As in sg_job_wait.
 * @return SG_STATUS_OK, SG_STATUS_TIMEOUT, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_DEADLOCK (from
 * the callback of a job of this stream). Blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_stream_synchronize(sg_stream *stream, int64_t timeout_ns);

/**
 * Lets what is submitted to `stream` after this call run only after `event` as it was last recorded.
 * @param event An event of the same context, its own or a wrapped one; one never recorded has happened.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (another context's event),
 * SG_STATUS_OUT_OF_MEMORY. Never blocks. Any thread. Since 0.1.
 */
SG_API sg_status sg_stream_wait_event(sg_stream *stream, sg_event *event);

SG_END_DECLS

#endif /* STREAMGEMM_STREAM_H */
