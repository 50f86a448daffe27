/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file stream.h
 * @brief Streams: the order of submissions.
 *
 * Jobs of one stream run in the order of their submission. Streams are cheap: they only order work. The streams of the
 * device are few and shared by all of them.
 *
 * The compute units (streaming multiprocessors, or cores) that the GEMMs of a stream may use can be limited; the others
 * stay free for other streams.
 *
 * - cpu: a GEMM of the stream is split for that many workers, and the GEMMs of the stream run one after the other.
 * - sim: virtual time passes accordingly; the rest of the device is free for others.
 * - cuda: the stream gets a partition of the GPU if the driver has green contexts (CUDA 12.5 and later). Its kernels run
 *   on the multiprocessors of the partition only, and no other partition of the process has them; streams without a limit
 *   use them too. If no partition is available, cuBLAS plans its kernels for that many multiprocessors. This is a hint:
 *   many of its kernels for f32 and f64 use all of them.
 *
 * Copies and jobs without a stream are not limited. The reduction of a GEMM that is split over K, padded copies and a scale-and-add are
 * limited by a partition only. Kernels in a partition run at the priority of their stream. A graph with a recorded submission to a partition is
 * replayed submission by submission.
 */
#ifndef STREAMGEMM_STREAM_H
#define STREAMGEMM_STREAM_H

#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Options of sg_stream_create. */
typedef struct sg_stream_options {
  size_t struct_size;    /**< sizeof(sg_stream_options), set by SG_STREAM_OPTIONS_INIT. */
  int32_t device;        /**< The context's device that its work runs on; SG_DEVICE_ANY: the one whose memory the operands are
                              in, or the library's choice; with a limit of compute units, device 0. */
  int32_t priority;      /**< -1 low, 0 normal, 1 high: the priority of its submissions unless they have one of their own. */
  int32_t compute_units; /**< Compute units that its GEMMs use at most: >= 1 (sg_device_info.compute_units says how many there
                              are); 0: all. A partition consists of whole groups of multiprocessors (8 on Hopper): as many as
                              fit and are in no other partition of the process. No partition is created for fewer
                              multiprocessors than a group, for all of the device, if every group is taken, or if the context
                              has 8 partitions. */
  uint32_t reserved;     /**< 0. */
} sg_stream_options;

/** Initial value of an sg_stream_options. */
#define SG_STREAM_OPTIONS_INIT {sizeof(sg_stream_options), SG_DEVICE_ANY, 0, 0, 0}

/**
 * Creates a stream, on one of the context's devices for instance, or for a part of a device. A GEMM in a stream of a device
 * runs there, and copies operands that are in the memory of others; any other operation refuses them
 * (SG_STATUS_INVALID_ARGUMENT).
 * @param options Options; NULL for the defaults. Read during the call only.
 * @param[out] out_stream One reference, to be released by sg_stream_release; NULL on failure. sg_stream_compute_units
 * returns what was granted, sg_stream_is_partition whether it is a partition. The multiprocessors are free for another
 * partition when the last reference is released and the jobs of the stream have completed. A partition takes about 40 MB
 * of device memory.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_UNSUPPORTED (the device has
 * no limit of compute units; the message says why), SG_STATUS_OUT_OF_MEMORY. Never blocks, but creating a partition takes
 * some milliseconds. Any thread.
 */
SG_API sg_status sg_stream_create(sg_context *context, const sg_stream_options *options, sg_stream **out_stream);

/**
 * The device that the stream's work runs on.
 * @param[out] out_device An index of the context's devices, or SG_DEVICE_ANY.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_stream_device(sg_stream *stream, int32_t *out_device);

/**
 * The compute units that the stream's GEMMs may use.
 * @param[out] out_compute_units The number granted, at most what the device has; 0: no limit.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_stream_compute_units(sg_stream *stream, int32_t *out_compute_units);

/**
 * Tests whether the stream's compute units are reserved for it: a partition of the GPU.
 * @param[out] out_is_partition 1: its GEMMs run on those units only, and no other partition of the process has them; 0: no
 * limit, or a limit without a partition (see the top of this file).
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_stream_is_partition(sg_stream *stream, int32_t *out_is_partition);

/**
 * Wraps a native stream (a cudaStream_t on cuda devices). A job submitted to the wrapper runs after the work that the
 * caller enqueued in the native stream before the call, and before the work that the caller enqueues there after the call
 * has returned.
 *
 * Therefore a submission to the wrapper, the recording of an event in it and a wait for an event return when the command is
 * in the native stream. A GEMM or a scale-and-add in device memory, a copy between device and pinned memory and a graph of
 * these are enqueued there at once, unless they must wait for earlier work that is not on the device yet. Other jobs run outside the native
 * stream, after its work so far, and the submission returns when they have completed. So a submission to the wrapper may
 * block, whatever the documentation of the function says.
 *
 * A stream of a green context may be wrapped; commands in it run on that context's multiprocessors.
 *
 * While the native stream is being captured, nothing may be submitted to the wrapper.
 * @param native The native stream, or NULL for the device's default stream; not cudaStreamPerThread, which is another
 * stream in each thread. The caller owns it; it must belong to the context's device and outlive the wrapper. The last sg_stream_release of the wrapper waits until its jobs have completed.
 * @param[out] out_stream One reference, to be released by sg_stream_release; NULL on failure. Its priority is 0.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_UNSUPPORTED (the device has no
 * native streams), SG_STATUS_BUSY (32 are wrapped), SG_STATUS_OUT_OF_MEMORY. Never blocks. Any thread.
 */
SG_API sg_status sg_stream_wrap(sg_context *context, void *native, sg_stream **out_stream);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_stream_retain(sg_stream *stream);

/**
 * Releases a reference. Its jobs in flight continue.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks, except for the last reference to a wrapper. Any thread.
 */
SG_API sg_status sg_stream_release(sg_stream *stream);

/**
 * The priority of the stream.
 * @param[out] out_priority -1, 0 or 1.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_stream_priority(sg_stream *stream, int32_t *out_priority);

/**
 * Tests whether every job submitted to the stream has completed.
 * @return SG_STATUS_OK, SG_STATUS_NOT_READY or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_stream_query(sg_stream *stream);

/**
 * Waits until every job submitted to the stream before this call has completed, successfully or not; for a wrapper, until
 * all work in the native stream has completed.
 * @param timeout_ns As in sg_job_wait.
 * @return SG_STATUS_OK, SG_STATUS_TIMEOUT, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_DEADLOCK (from
 * the callback of a job of this stream). Blocks. Any thread.
 */
SG_API sg_status sg_stream_synchronize(sg_stream *stream, int64_t timeout_ns);

/**
 * Makes jobs submitted to `stream` after this call run after `event` as it was last recorded.
 * @param event An event of the same context, also a wrapped native one. An event that was never recorded has happened.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (another context's event),
 * SG_STATUS_OUT_OF_MEMORY. Never blocks. Any thread.
 */
SG_API sg_status sg_stream_wait_event(sg_stream *stream, sg_event *event);

SG_END_DECLS

#endif /* STREAMGEMM_STREAM_H */
