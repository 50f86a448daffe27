/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file layers.h
 * @brief Operations of deep networks beside GEMMs: functions of elements, softmax, layer norm, RMS norm, rotary embedding.
 *
 * The type is f64, f32, f16 or bf16, the same for all operands. Arithmetic is in f64 for f64 and in f32 for the other types;
 * each element of the result is rounded once, to nearest. An exponential that would be subnormal may be 0. All matrices of a call,
 * except for tables, have the same shape; each has its own layout and leading dimension. Where layouts differ, the job first
 * transposes an operand into memory of the context: equal layouts are faster. Gaps between columns or rows are never accessed.
 *
 * In place: the result may be an operand itself, that is the same address and leading dimension. Operands that overlap the
 * result in another way are refused.
 *
 * Operands are in any memory (memory.h). Order, tracking, priorities, cancellation and deadlines are those
 * of sg_gemm_async, so that a GEMM, its softmax and the next GEMM need no waits between them. The caller owns the operands;
 * job.h states their lifetime. A stream's limit of compute units confines them only on the cpu, or if it is a partition.
 *
 * A refused call accesses nothing. A matrix without elements succeeds.
 */
#ifndef STREAMGEMM_LAYERS_H
#define STREAMGEMM_LAYERS_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Descriptor of C = function(A), or C = function(A, B), element by element. With a gradient C = dX, A = dY and B = X, where
 * Y = function(X). Since 0.2. */
typedef struct sg_elementwise_desc {
  size_t struct_size;   /**< sizeof(sg_elementwise_desc), set by SG_ELEMENTWISE_DESC_INIT. */
  sg_matrix a;          /**< [in: rows x cols] A. */
  sg_matrix b;          /**< [in optional: rows x cols] B; read only. Not used by functions of one operand. */
  sg_matrix c;          /**< [out: rows x cols] The result; may be A or B. */
  sg_function function; /**< The function; 0 is refused. */
  uint32_t reserved;    /**< 0. */
} sg_elementwise_desc;

/** Initial value of an sg_elementwise_desc: no function. */
#define SG_ELEMENTWISE_DESC_INIT                                                                   \
  {                                                                                                \
    sizeof(sg_elementwise_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, (sg_function)0, 0 \
  }

/**
 * Descriptor of a softmax of each row: y[i][j] = e^(x[i][j] - m) / sum over k of e^(x[i][k] - m), where m is the row's maximum.
 *
 * With a causal mask row i has the columns j <= i + mask_offset only: the other elements of x, NaN too, have no effect, and y
 * becomes 0 there. In a stack of matrices, one below the other, i counts from 0 in each of them. A row
 * without columns, and one of minus infinity alone, becomes 0. A row with a NaN or plus infinity becomes NaN in all its
 * columns (0 where it is masked). Since 0.2.
 */
typedef struct sg_softmax_desc {
  size_t struct_size;  /**< sizeof(sg_softmax_desc), set by SG_SOFTMAX_DESC_INIT. */
  sg_matrix x;         /**< [in: rows x cols] X. */
  sg_matrix y;         /**< [out: rows x cols] The result; may be X. */
  sg_mask mask;        /**< Default: none. */
  uint32_t reserved;   /**< 0. */
  int64_t mask_offset; /**< Of a causal mask, in columns: 0 for as many keys as queries, and the number of earlier keys if there
                            are more. May be negative; without a mask it is 0. */
  int64_t mask_rows;   /**< Of a causal mask: rows of each matrix of a stack; 0: x is one matrix. Divides the rows of x. */
} sg_softmax_desc;

/** Initial value of an sg_softmax_desc: no mask. */
#define SG_SOFTMAX_DESC_INIT {sizeof(sg_softmax_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MASK_NONE, 0, 0, 0}

/**
 * Descriptor of a normalization of each row, of n columns.
 * Layer norm: y[i][j] = (x[i][j] - mean) / sqrt(variance + epsilon) * gamma[j] + beta[j], with the variance as the mean of the
 * squared differences. RMS norm: y[i][j] = x[i][j] / sqrt(mean of x[i][k]^2 + epsilon) * gamma[j]. Sums of squares that exceed
 * the arithmetic's range are infinite. Since 0.2.
 */
typedef struct sg_norm_desc {
  size_t struct_size; /**< sizeof(sg_norm_desc), set by SG_NORM_DESC_INIT. */
  sg_matrix x;        /**< [in: rows x cols] X. */
  sg_matrix y;        /**< [out: rows x cols] The result; may be X. */
  const void *gamma;  /**< [in optional: cols] n contiguous values of X's type; may not overlap Y; NULL: ones. */
  const void *beta;   /**< [in optional: cols] Likewise; NULL: zeros. Layer norm only. */
  double epsilon;     /**< >= 0, finite. SG_NORM_DESC_INIT sets 1e-5. */
  sg_norm_kind kind;  /**< Default: layer norm. */
  uint32_t reserved;  /**< 0. */
} sg_norm_desc;

/** Initial value of an sg_norm_desc: a layer norm without gamma and beta, epsilon 1e-5. */
#define SG_NORM_DESC_INIT {sizeof(sg_norm_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, NULL, NULL, 1e-5, SG_NORM_LAYER, 0}

/**
 * Descriptor of a rotary embedding: pairs of elements of each head are rotated by an angle that grows with the row's position.
 * A row of X is that of a token: its heads one after another, head_size columns each. In each head the first d = rotated_size
 * elements are d/2 pairs (a, b), which become (a cos - b sin, a sin + b cos); the others are copied.
 *
 * The row i has the position p = first_position + i, or with a sequence length first_position + (i modulo sequence_length).
 * Pair j of a row is rotated by cos[p][j] and sin[p][j], the caller's tables, which may have any values; without tables by
 * the angle p * theta^(-2j/d), computed in f64. ONNX's RotaryEmbedding is this with tables of X's type. The inverse rotates
 * back: it is the gradient, from dY to dX.
 *
 * Since 0.2.
 */
typedef struct sg_rotary_desc {
  size_t struct_size;      /**< sizeof(sg_rotary_desc), set by SG_ROTARY_DESC_INIT. */
  sg_matrix x;             /**< [in: rows x cols] X. */
  sg_matrix y;             /**< [out: rows x cols] The result; may be X. */
  sg_matrix cos;           /**< [in optional: positions x pairs] positions x d/2, of X's type, or f32 for f16 and bf16; may not overlap Y. data NULL: by theta,
                                and the other fields are not used. */
  sg_matrix sin;           /**< [in optional: positions x pairs] Likewise; given together with cos. */
  int64_t head_size;       /**< Columns of a head: a divisor of X's; 0: all of them. */
  int64_t rotated_size;    /**< d: even, at most head_size; 0: head_size. */
  int64_t first_position;  /**< Of the first row; >= 0. In a graph the tables' addresses move it. */
  int64_t sequence_length; /**< Rows of a sequence, after which positions begin again; 0: there is one sequence. */
  double theta;            /**< The base: positive, finite. SG_ROTARY_DESC_INIT sets 10000. Without tables only. */
  sg_rotary_pairs pairs;   /**< Default: halves. */
  int32_t inverse;         /**< 1: rotates by the negative angle; 0: by the angle. */
} sg_rotary_desc;

/** Initial value of an sg_rotary_desc: one head, all of it rotated, by theta 10000 from position 0. */
#define SG_ROTARY_DESC_INIT                                                                                      \
  {                                                                                                              \
    sizeof(sg_rotary_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, 0, 0, 0, 0, 10000.0, \
        SG_ROTARY_HALVES, 0                                                                                      \
  }

/**
 * Submits a function of elements and returns at once.
 * @param context The context that runs it.
 * @param desc The matrices and the function; read during the call only.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job
 * limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_elementwise_async(sg_context *context, const sg_elementwise_desc *desc, const sg_submit *submit,
                                      sg_job **out_job);

/**
 * Submits a function of elements and waits for it: sg_elementwise_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_elementwise(sg_context *context, const sg_elementwise_desc *desc, const sg_submit *submit);

/**
 * Submits a softmax and returns at once.
 * @param context,desc As in sg_elementwise_async.
 * @param submit,out_job As in sg_elementwise_async.
 * @return As sg_elementwise_async.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_softmax_async(sg_context *context, const sg_softmax_desc *desc, const sg_submit *submit,
                                  sg_job **out_job);

/**
 * Submits a softmax and waits for it: sg_softmax_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_softmax(sg_context *context, const sg_softmax_desc *desc, const sg_submit *submit);

/**
 * Submits a layer norm or an RMS norm and returns at once.
 * @param context,desc As in sg_elementwise_async.
 * @param submit,out_job As in sg_elementwise_async.
 * @return As sg_elementwise_async.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_norm_async(sg_context *context, const sg_norm_desc *desc, const sg_submit *submit,
                               sg_job **out_job);

/**
 * Submits a layer norm or an RMS norm and waits for it: sg_norm_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_norm(sg_context *context, const sg_norm_desc *desc, const sg_submit *submit);

/**
 * Submits a rotary embedding and returns at once.
 * @param context,desc As in sg_elementwise_async.
 * @param submit,out_job As in sg_elementwise_async.
 * @return As sg_elementwise_async.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_rotary_async(sg_context *context, const sg_rotary_desc *desc, const sg_submit *submit,
                                 sg_job **out_job);

/**
 * Submits a rotary embedding and waits for it: sg_rotary_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_rotary(sg_context *context, const sg_rotary_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_LAYERS_H */
