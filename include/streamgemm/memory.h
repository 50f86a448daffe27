/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file memory.h
 * @brief Pinned host memory, device memory, and asynchronous copies.
 *
 * Each operand of an operation may be in pageable, pinned or device memory, in any combination; the library determines which.
 * On a device with memory of its own the job copies operands from host memory to device memory and results back, without the
 * gaps between their rows: so a program for the cpu runs on a GPU, too. GEMMs, linear layers, convolutions and their gradients
 * copy part by part while they compute. The other operations copy an operand whole before they read it, and need device memory for
 * it (SG_STATUS_OUT_OF_MEMORY if there is too little), so operands that several jobs use are better kept in device memory.
 */
#ifndef STREAMGEMM_MEMORY_H
#define STREAMGEMM_MEMORY_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Allocates pinned host memory, which the device copies at full speed: aligned to 4096 bytes, uninitialised.
 * @param bytes Size; 0 gives a unique pointer that may be freed.
 * @param[out] out_memory The memory, valid until sg_host_free or the end of the context; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * May block for long (pinning a GiB takes a large part of a second). Any thread.
 */
SG_API sg_status sg_host_alloc(sg_context *context, uint64_t bytes, void **out_memory);

/**
 * The same as sg_host_alloc, with the pages on the NUMA node of a device, if they fit there: a device of another socket copies them
 * at a part of the rate. Where the kernel does not tell the device's node, or refuses to place memory, it is the same as
 * sg_host_alloc.
 * @param device 0 <= device < sg_context_device_count; or -1: interleaved over all nodes, for memory that each device copies.
 * @param bytes Size; 0 gives a unique pointer that may be freed.
 * @param[out] out_memory The memory, valid until sg_host_free or the end of the context; NULL on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * May block for long. Any thread.
 */
SG_API sg_status sg_host_alloc_near(sg_context *context, int32_t device, uint64_t bytes, void **out_memory);

/**
 * Frees memory that sg_host_alloc or sg_host_alloc_near returned.
 * @param memory The pointer; NULL is a no-op. No job in flight may use the memory.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (not such a pointer of this context).
 * May block. Any thread.
 */
SG_API sg_status sg_host_free(sg_context *context, void *memory);

/**
 * Pins host memory of the caller, so that copies from and to it run at full speed. Registered ranges may not overlap.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY, or the backend's.
 * May block for long. Any thread.
 */
SG_API sg_status sg_host_register(sg_context *context, void *memory, uint64_t bytes);

/**
 * Unpins memory that sg_host_register pinned, by the same pointer. No job in flight may use the range.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT (not registered).
 * May block. Any thread.
 */
SG_API sg_status sg_host_unregister(sg_context *context, void *memory);

/**
 * Memory of one of the context's devices that can be allocated now; all of it is sg_device_info.memory_bytes.
 * @param device 0 <= device < sg_context_device_count.
 * @param[out] out_bytes The bytes, about: they may be fragmented, and other processes may allocate them first. Memory that the
 * context keeps for later jobs (sg_context_metrics.device_bytes) is not among them. On the cpu the host's.
 * @return SG_STATUS_OK; SG_STATUS_UNSUPPORTED: the backend does not tell; SG_STATUS_BACKEND_FAILURE: the device is lost;
 * SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT. Never blocks on work in flight. Any thread.
 */
SG_API sg_status sg_context_available_memory(sg_context *context, int32_t device, uint64_t *out_bytes);

/**
 * The memory space of an address, by which operands and copies there are treated.
 * @param memory The first byte.
 * @param bytes Its size; > 0. The whole range must be in one space to be pinned or of a device.
 * @param[out] out_kind Never SG_MEMORY_AUTO on success. On a device that uses host memory itself (cpu) always
 * SG_MEMORY_DEVICE.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_context_memory_kind(sg_context *context, const void *memory, uint64_t bytes, sg_memory_kind *out_kind);

/**
 * The device whose memory a buffer is.
 * @param[out] out_device An index of the context's devices.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE or SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_buffer_device(sg_buffer *buffer, int32_t *out_device);

/** Options of sg_buffer_create. */
typedef struct sg_buffer_options {
  size_t struct_size; /**< sizeof(sg_buffer_options), set by SG_BUFFER_OPTIONS_INIT. */
  int32_t device;     /**< The context's device whose memory it is. */
  uint32_t reserved;  /**< 0. */
} sg_buffer_options;

/** Initial value of an sg_buffer_options: device 0. */
#define SG_BUFFER_OPTIONS_INIT {sizeof(sg_buffer_options), 0, 0}

/**
 * Allocates memory of one of the context's devices, aligned to 256 bytes, uninitialised.
 * @param bytes Size; > 0.
 * @param options Options; NULL for the defaults. Read during the call only.
 * @param[out] out_buffer One reference, to be released by sg_buffer_release; NULL on failure. The memory is
 * freed when the last reference is released and the jobs submitted before that have completed. A context keeps up to 128 MiB of
 * freed buffers of at most 16 MiB for new ones of the same size, so that these cost no allocation by the driver.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT, SG_STATUS_OUT_OF_MEMORY.
 * May block. Any thread.
 */
SG_API sg_status sg_buffer_create(sg_context *context, uint64_t bytes, const sg_buffer_options *options,
                                  sg_buffer **out_buffer);

/**
 * Adds a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks. Any thread.
 */
SG_API sg_status sg_buffer_retain(sg_buffer *buffer);

/**
 * Releases a reference.
 * @return SG_STATUS_OK or SG_STATUS_INVALID_HANDLE. Never blocks on work in flight. Any thread.
 */
SG_API sg_status sg_buffer_release(sg_buffer *buffer);

/**
 * The buffer's address, for matrix views and copies. Only the device may read it, unless it has unified memory.
 * @param[out] out_data The address; NULL on failure. Valid as long as the buffer.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_buffer_data(sg_buffer *buffer, void **out_data);

/**
 * The buffer's size in bytes.
 * @param[out] out_bytes The size; 0 on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_HANDLE, SG_STATUS_INVALID_ARGUMENT. Never blocks. Any thread.
 */
SG_API sg_status sg_buffer_size(sg_buffer *buffer, uint64_t *out_bytes);

/**
 * Copies `bytes` bytes. Source and destination may be in host or device memory and may not overlap.
 * @param submit,out_job As in sg_gemm_async; the same rules of order apply.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_OUT_OF_MEMORY,
 * SG_STATUS_BUSY (the context's job limit), SG_STATUS_SHUTDOWN: not submitted. 0 bytes succeed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread.
 */
SG_API sg_status sg_copy_async(sg_context *context, void *dst, const void *src, uint64_t bytes, const sg_submit *submit,
                               sg_job **out_job);

/**
 * Copies `height` rows of `width` bytes, dst_pitch and src_pitch bytes apart. The gaps between rows are not accessed.
 * @param dst_pitch,src_pitch In bytes; >= width.
 * @return As sg_copy_async. Never blocks on work in flight, unless the context has a job limit. Any thread.
 */
SG_API sg_status sg_copy_2d_async(sg_context *context, void *dst, uint64_t dst_pitch, const void *src,
                                  uint64_t src_pitch, uint64_t width, uint64_t height, const sg_submit *submit,
                                  sg_job **out_job);

/**
 * Copies and waits: sg_copy_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread.
 */
SG_API sg_status sg_copy(sg_context *context, void *dst, const void *src, uint64_t bytes, const sg_submit *submit);

/**
 * Copies rows and waits: sg_copy_2d_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread.
 */
SG_API sg_status sg_copy_2d(sg_context *context, void *dst, uint64_t dst_pitch, const void *src, uint64_t src_pitch,
                            uint64_t width, uint64_t height, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_MEMORY_H */
