/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gather.h
 * @brief Rows of a table by their numbers: the look-up of an embedding, and sums into such rows, its gradient.
 *
 * It is a job like those of layers.h, whose rules for memory, order, overlap and graphs are its too.
 *
 * A refused call accesses nothing. A matrix without elements succeeds.
 */
#ifndef STREAMGEMM_GATHER_H
#define STREAMGEMM_GATHER_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Bits of sg_gather_desc.flags. Since 0.2. */
typedef enum sg_gather_flags SG_ENUM_INT {
  SG_GATHER_FROM_END = 1, /**< An index from -rows to -1 counts from the end of the table: -1 is its last row, as in ONNX and NumPy. */
  SG_GATHER_NAN = 2       /**< A row whose index is out of range becomes NaN, in f64, f32, f16 and bf16, not 0. */
} sg_gather_flags;

/**
 * Descriptor of a gather: row i of Y is row indices[i] of the table, bit by bit. Any element type.
 *
 * Indices are read when the job runs. An index is in range from 0 to rows - 1, or with SG_GATHER_FROM_END from -rows. The row
 * of any other index becomes 0, or with SG_GATHER_NAN NaN: nothing outside the table is accessed, and the job succeeds.
 * The matrices are row-major; of f64, f32, f16 and bf16 each has its own layout. Y may overlap neither the table nor the indices. Since 0.2.
 */
typedef struct sg_gather_desc {
  size_t struct_size;       /**< sizeof(sg_gather_desc), set by SG_GATHER_DESC_INIT. */
  sg_matrix table;          /**< [in: table_rows x cols] The rows to choose from, one at least. */
  sg_matrix y;              /**< [out: rows x cols] The result: a row for each index, of the table's type and columns. */
  const void *indices;      /**< [in: rows of index_type] As many as Y has rows, contiguous, aligned to their size. */
  sg_index_type index_type; /**< Default: i32. */
  uint32_t flags;           /**< sg_gather_flags: SG_GATHER_FROM_END, SG_GATHER_NAN, or both. Default: 0. */
} sg_gather_desc;

/** Initial value of an sg_gather_desc: indices of i32, zeros for those out of range. */
#define SG_GATHER_DESC_INIT {sizeof(sg_gather_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, NULL, SG_INDEX_I32, 0}

/**
 * Descriptor of sums into rows: row indices[i] of the table += row i of X, for all i. The gradient of sg_gather.
 *
 * Indices are read when the job runs; a row whose index is out of range, as in sg_gather_desc, is left out. The type is f64, f32, f16 or bf16. The rows of one
 * index are added in their order, in f64 for f64 and in f32 for the others, and to the table last, with one rounding: results are the same at each run. Since 0.2.
 */
typedef struct sg_scatter_add_desc {
  size_t struct_size;       /**< sizeof(sg_scatter_add_desc), set by SG_SCATTER_ADD_DESC_INIT. */
  sg_matrix table;          /**< [inout: table_rows x cols] The rows to add to, one at least. */
  sg_matrix x;              /**< [in: rows x cols] A row for each index, of the table's type; does not overlap the table. */
  const void *indices;      /**< [in: rows of index_type] As many as X has rows, contiguous, aligned to their size. */
  sg_index_type index_type; /**< Default: i32. */
  uint32_t flags;           /**< sg_gather_flags: SG_GATHER_FROM_END, or none. Default: 0. */
} sg_scatter_add_desc;

/** Initial value of an sg_scatter_add_desc: indices of i32. */
#define SG_SCATTER_ADD_DESC_INIT {sizeof(sg_scatter_add_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, NULL, SG_INDEX_I32, 0}

/**
 * Submits a gather and returns at once.
 * @param context The context that runs it.
 * @param desc The table, the indices and the result; read during the call only.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED
 * (column-major matrices of some types), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job
 * limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_gather_async(sg_context *context, const sg_gather_desc *desc, const sg_submit *submit,
                                 sg_job **out_job);

/**
 * Submits a gather and waits for it: sg_gather_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_gather(sg_context *context, const sg_gather_desc *desc, const sg_submit *submit);

/**
 * Submits sums into rows of a table and returns at once.
 * @param context,desc As in sg_gather_async.
 * @param submit,out_job As in sg_gather_async.
 * @return As sg_gather_async.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_scatter_add_async(sg_context *context, const sg_scatter_add_desc *desc, const sg_submit *submit,
                                      sg_job **out_job);

/**
 * Submits sums into rows of a table and waits for them: sg_scatter_add_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_scatter_add(sg_context *context, const sg_scatter_add_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_GATHER_H */
