/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file convert.h
 * @brief Operations that change how the elements of a matrix are stored: dequantization; casts and transposition.
 *
 * The rules of layers.h for memory, order, overlap and graphs apply. The operations are bound by memory: each element is read once
 * and written once.
 *
 * A refused call accesses nothing. A matrix without elements succeeds.
 */
#ifndef STREAMGEMM_CONVERT_H
#define STREAMGEMM_CONVERT_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Descriptor of a dequantization: y[i][j] = (x[i][j] - zero_points[i][b]) * scales[i][b], where b = j / block_size, rounded down.
 *
 * A block is block_size consecutive values of a row; it has one scale. Differences are exact; the product is computed in f32
 * and rounded to Y's type. Matrices of i8 are row-major, others of any
 * layout. Y may not overlap the other operands.
 *
 * X is a matrix of bytes (SG_DTYPE_I8) as they are stored: of rows x cols values for SG_QUANTIZATION_I8, and of rows x cols/2
 * pairs of values for SG_QUANTIZATION_I4, where column 2j is in the low four bits of byte j and column 2j + 1 in the high
 * ones. That is the order of ONNX (DequantizeLinear with a block_size along the last axis) and of oneDNN's s4 with groups.
 *
 * GGML's blocks of 32 have their f16 scale before their values. With scales and values separated, Q8_0 is
 * SG_QUANTIZATION_I8 with block_size 32 and f16 scales. Byte j of a block of Q4_0 has its values j (low) and j + 16 (high),
 * each 8 greater: those two, less 8, go to columns j and j + 16 of the block. Values without a sign, 0 to 15, become those
 * of SG_QUANTIZATION_I4 by an exclusive or of each byte with 0x88, which subtracts 8; a zero point is then 8 less too.
 * Since 0.2.
 */
typedef struct sg_dequantize_desc {
  size_t struct_size;           /**< sizeof(sg_dequantize_desc), set by SG_DEQUANTIZE_DESC_INIT. */
  sg_matrix x;                  /**< [in: rows x stored] The quantized values, i8. */
  sg_matrix scales;             /**< [in: rows x blocks] rows x cols/block_size; f32, f16 or bf16, whatever Y's type. */
  sg_matrix zero_points;        /**< [in optional: rows x blocks] Likewise, i8; read only. data NULL: all are 0, and the other fields are not used. */
  sg_matrix y;                  /**< [out: rows x cols] The result, rows x cols; f32, f16 or bf16. */
  int64_t block_size;           /**< Values of a block: positive, even, and a divisor of cols. SG_DEQUANTIZE_DESC_INIT sets 32. */
  sg_quantization quantization; /**< How a value is stored; 0 is refused. */
  uint32_t reserved;            /**< 0. */
} sg_dequantize_desc;

/** Initial value of an sg_dequantize_desc: blocks of 32, no quantization. */
#define SG_DEQUANTIZE_DESC_INIT                                                                         \
  {                                                                                                     \
    sizeof(sg_dequantize_desc), {NULL, 0, 0, 0, SG_DTYPE_I8, SG_LAYOUT_ROW_MAJOR, 0}, SG_MATRIX_INIT,   \
        {NULL, 0, 0, 0, SG_DTYPE_I8, SG_LAYOUT_ROW_MAJOR, 0}, SG_MATRIX_INIT, 32, (sg_quantization)0, 0 \
  }

/**
 * Descriptor of C = op(A), cast to C's type: f64, f32, f16 or bf16 each. A number is rounded once, to nearest, ties to even;
 * beyond the type's largest it becomes infinity. NaN stays NaN. With one type the bits are copied.
 *
 * The layouts may differ: with op N a row-major A and a column-major C are one matrix in both orders. C may be A itself only
 * if every element stays where it is (the address, the size of an element and the leading dimension are equal, and the
 * memory is not transposed). Since 0.2.
 */
typedef struct sg_convert_desc {
  size_t struct_size; /**< sizeof(sg_convert_desc), set by SG_CONVERT_DESC_INIT. */
  sg_matrix a;        /**< [in: rows x cols] A, as stored. */
  sg_matrix c;        /**< [out: op_a(rows x cols)] The result: of A's shape, or with an op that transposes of the transposed one. */
  sg_transpose op_a;         /**< N, T, or C, which is T here. Default: N. */
  uint32_t reserved;  /**< 0. */
} sg_convert_desc;

/** Initial value of an sg_convert_desc: from f32 to f32, not transposed. */
#define SG_CONVERT_DESC_INIT {sizeof(sg_convert_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_TRANSPOSE_N, 0}

/**
 * Submits a dequantization and returns at once.
 * @param context The context that runs it.
 * @param desc The matrices and the block size; read during the call only.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types, column-major matrices), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's
 * job limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_dequantize_async(sg_context *context, const sg_dequantize_desc *desc, const sg_submit *submit,
                                     sg_job **out_job);

/**
 * Submits a dequantization and waits for it: sg_dequantize_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_dequantize(sg_context *context, const sg_dequantize_desc *desc, const sg_submit *submit);

/**
 * Submits a cast, or a transposition, or both in one, and returns at once.
 * @param context,desc As in sg_dequantize_async.
 * @param submit,out_job As in sg_dequantize_async.
 * @return As sg_dequantize_async, without column-major matrices.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_convert_async(sg_context *context, const sg_convert_desc *desc, const sg_submit *submit,
                                  sg_job **out_job);

/**
 * Submits a cast, or a transposition, or both, and waits for it: sg_convert_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_convert(sg_context *context, const sg_convert_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_CONVERT_H */
