/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fill.h
 * @brief Fills: each element of a matrix becomes one value.
 *
 * The matrix has any type, layout and memory (memory.h). Gaps between its rows or columns are never accessed. Order, tracking,
 * priorities, cancellation and deadlines are those of sg_gemm_async.
 */
#ifndef STREAMGEMM_FILL_H
#define STREAMGEMM_FILL_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Descriptor of a fill: y[i][j] = value. */
typedef struct sg_fill_desc {
  size_t struct_size; /**< sizeof(sg_fill_desc), set by SG_FILL_DESC_INIT. */
  sg_matrix y;        /**< [out: rows x cols] Y, of any type; its contents are not read. */
  sg_scalar value;    /**< Rounded to Y's type, ties to even; of i8 and i32 an integer. What the type cannot hold is refused: a number
                           beyond its largest, or infinity in f8_e4m3. Default: 0. */
} sg_fill_desc;

/** Initial value of an sg_fill_desc: zeros. */
#define SG_FILL_DESC_INIT {sizeof(sg_fill_desc), SG_MATRIX_INIT, {0.0, 0.0}}

/**
 * Submits a fill and returns at once.
 * @param context The context that runs it.
 * @param desc The matrix and the value; read during the call only. The caller owns the matrix; job.h states its lifetime.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT (also a value that the type cannot hold), SG_STATUS_INVALID_HANDLE,
 * SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed. An
 * empty Y succeeds.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.9.
 */
SG_API sg_status sg_fill_async(sg_context *context, const sg_fill_desc *desc, const sg_submit *submit, sg_job **out_job);

/**
 * Submits a fill and waits for it: sg_fill_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.9.
 */
SG_API sg_status sg_fill(sg_context *context, const sg_fill_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_FILL_H */
