/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file row_reduce.h
 * @brief The sum, the mean, the maximum or the minimum of each row.
 *
 * The rules of layers.h for types, arithmetic, memory and order apply.
 * Sums of many columns are computed in parts, so that their error grows slowly with the number of columns. The rows of the transposed
 * matrix, which is the same memory in the other layout, are the columns.
 */
#ifndef STREAMGEMM_ROW_REDUCE_H
#define STREAMGEMM_ROW_REDUCE_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Descriptor of a reduction of each row: y[i] = the sum, mean, maximum or minimum over j of x[i][j].
 *
 * Y is one column of X's type, in either layout: ld is the distance of its elements if it is row-major. Without columns X is not
 * accessed. Since 0.2.
 */
typedef struct sg_row_reduce_desc {
  size_t struct_size;     /**< sizeof(sg_row_reduce_desc), set by SG_ROW_REDUCE_DESC_INIT. */
  sg_matrix x;            /**< [in: rows x cols] X. */
  sg_matrix y;            /**< [out: rows x 1] The result; overlaps no operand. */
  sg_reduction reduction; /**< Default: the sum. */
  uint32_t reserved;      /**< 0. */
} sg_row_reduce_desc;

/** Initial value of an sg_row_reduce_desc: sums. */
#define SG_ROW_REDUCE_DESC_INIT {sizeof(sg_row_reduce_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_REDUCTION_SUM, 0}

/**
 * Submits a reduction of each row and returns at once.
 * @param context The context that runs it.
 * @param desc The operands; read during the call only.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job
 * limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_row_reduce_async(sg_context *context, const sg_row_reduce_desc *desc, const sg_submit *submit,
                                     sg_job **out_job);

/**
 * Submits a reduction of each row and waits for it: sg_row_reduce_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_row_reduce(sg_context *context, const sg_row_reduce_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_ROW_REDUCE_H */
