/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file collective.h
 * @brief Sums over the devices of a context: each device's vector becomes the sum of all of them, as of gradients in training.
 *
 * Each vector is in device memory, on any of the context's devices (sg_buffer_options), of which there may be one: several vectors
 * may be on one device. Every device sums a part of the elements, which it pulls from the others, and pulls the other parts of the
 * result: over the links between the devices where there are such, otherwise through the host. The bytes over the links are 2 * (g - 1) / g
 * of a vector's for each of g devices.
 *
 * Each element is computed once, in the accumulator of gemm.h (f32 for f16 and bf16, modulo 2^32 for i32), rounded once, and copied, so
 * all vectors have the same bits. The order of the addends depends on the number of vectors, not on where they are, so the result is
 * the same in each run; only a GPU may add 16 or more in another order, by the size of the slices. A device takes memory for one or
 * two slices of every vector, and of f16 and bf16 of the sums: of as many slices of its part, up to 64 of at least 8 MiB, as are about as
 * fast as any; the cpu for one of 256 KiB or more for each core.
 */
#ifndef STREAMGEMM_COLLECTIVE_H
#define STREAMGEMM_COLLECTIVE_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Limit of the vectors of an all-reduce. */
#define SG_MAX_ALL_REDUCE_OPERANDS 64

/** Descriptor of an all-reduce: each vector becomes the sum of all of them. */
typedef struct sg_all_reduce_desc {
  size_t struct_size;    /**< sizeof(sg_all_reduce_desc), set by SG_ALL_REDUCE_DESC_INIT. */
  void *const *operands; /**< The addresses of the vectors, contiguous, in device memory; none overlaps another. The array is read
                              during the call only. */
  int64_t elements;      /**< Elements of each vector. 0: nothing to do. */
  int32_t operand_count; /**< Number of vectors, from 1 to SG_MAX_ALL_REDUCE_OPERANDS. With 1 there is nothing to do. */
  sg_dtype dtype;        /**< Of all vectors: f64, f32, f16, bf16, c64, c128 or i32. */
} sg_all_reduce_desc;

/** Initial value of an sg_all_reduce_desc: no vector, f32. */
#define SG_ALL_REDUCE_DESC_INIT \
  { sizeof(sg_all_reduce_desc), NULL, 0, 0, SG_DTYPE_F32 }

/**
 * Submits an all-reduce and returns at once.
 *
 * One call and one job for all devices: it runs after the jobs, on any device, that write or read the vectors, and later ones wait for it
 * (sg_gemm_async). If it fails or is cancelled, all vectors count as partly written.
 * @param context The context that runs it, with all of the devices.
 * @param desc The vectors; read during the call only. The caller owns them; job.h states their lifetime.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored. A stream of one device is refused if
 * a vector is on another one.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT (also: a vector in host memory), SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types),
 * SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread.
 */
SG_API sg_status sg_all_reduce_async(sg_context *context, const sg_all_reduce_desc *desc, const sg_submit *submit,
                                     sg_job **out_job);

/**
 * Submits an all-reduce and waits for it: sg_all_reduce_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread.
 */
SG_API sg_status sg_all_reduce(sg_context *context, const sg_all_reduce_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_COLLECTIVE_H */
