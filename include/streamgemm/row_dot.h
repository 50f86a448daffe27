/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file row_dot.h
 * @brief Dot products of the rows of two matrices.
 *
 * The rules of layers.h for types, arithmetic, memory and order apply. Products and sums are computed in the arithmetic's type, and
 * long sums in parts, so that their error grows slowly with the number of columns. NaN and infinities follow from the arithmetic.
 */
#ifndef STREAMGEMM_ROW_DOT_H
#define STREAMGEMM_ROW_DOT_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Descriptor of the dot products of rows: y[i] = sum over j of a[i][j] * b[i][j].
 *
 * A and B have the same shape and type, and may be the same matrix. Y is one column of their type, in either layout: ld is
 * the distance of its elements if it is row-major. Without columns Y becomes 0; A and B are then not accessed. Since 0.2.
 */
typedef struct sg_row_dot_desc {
  size_t struct_size; /**< sizeof(sg_row_dot_desc), set by SG_ROW_DOT_DESC_INIT. */
  sg_matrix a;        /**< [in: rows x cols] A. */
  sg_matrix b;        /**< [in: rows x cols] B. */
  sg_matrix y;        /**< [out: rows x 1] The result; overlaps no operand. */
} sg_row_dot_desc;

/** Initial value of an sg_row_dot_desc: matrices of f32 without elements. */
#define SG_ROW_DOT_DESC_INIT {sizeof(sg_row_dot_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT}

/**
 * Submits dot products of rows and returns at once.
 * @param context The context that runs them.
 * @param desc The matrices; read during the call only.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job
 * limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_row_dot_async(sg_context *context, const sg_row_dot_desc *desc, const sg_submit *submit,
                                  sg_job **out_job);

/**
 * Submits dot products of rows and waits for them: sg_row_dot_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_row_dot(sg_context *context, const sg_row_dot_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_ROW_DOT_H */
