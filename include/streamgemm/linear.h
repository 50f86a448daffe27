/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file linear.h
 * @brief A linear layer: Y = activation(X * W + bias), and its gradients as one job.
 *
 * Shapes: X is rows x in, Y is rows x out, W is in x out, or out x in with op_w SG_TRANSPOSE_T, as many frameworks store it.
 * The bias has `out` values. Each matrix may be row or column major and has its own leading dimension; gaps are never
 * accessed.
 *
 * Forward it is a GEMM (gemm.h): its types, rules, plans and graphs apply.
 *
 * Backward, dY is the gradient of the loss with respect to X * W + bias: where the layer has an activation, its
 * derivative has been applied.
 *
 *     dX = dY * W^T        dW = X^T * dY (+ dW)        dbias = sums of the columns of dY (+ dbias)
 *
 * X, W and dY have one type: f64, f32, f16 or bf16. dX, dW and dbias each have that type, or f32 for f16 and bf16, which
 * is right for gradients that are accumulated. Sums are kept in f64 for f64 and in f32 for the others, and rounded once.
 *
 * Memory: any, each operand by itself. With operands on the host, dY crosses the link once, finished parts of dX and dW
 * go out while other operands come in, and W and dY are on the device as a whole; where memory is short for that, each
 * result is computed from tiles, after the other. If dW is out x in and row major, or the like, its parts are not
 * contiguous on the host, which takes longer.
 */
#ifndef STREAMGEMM_LINEAR_H
#define STREAMGEMM_LINEAR_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Descriptor of a linear layer, Y = activation(X * op_w(W) + bias). Since 0.2. */
typedef struct sg_linear_desc {
  size_t struct_size;       /**< sizeof(sg_linear_desc), set by SG_LINEAR_DESC_INIT. */
  sg_matrix x;              /**< [in: rows x in] X, rows x in. */
  sg_matrix w;              /**< [in: op_w(in x out)] W as stored. */
  sg_matrix y;              /**< [out: rows x out] The result, rows x out; overlaps no other operand. */
  const void *bias;         /**< [in optional: out] `out` contiguous values of Y's type; NULL: zeros. */
  sg_transpose op_w;               /**< SG_TRANSPOSE_N: W is stored in x out; SG_TRANSPOSE_T: out x in. */
  sg_activation activation; /**< Default: none. */
  sg_compute compute;       /**< The least accurate arithmetic allowed. Default: exact. */
  uint32_t reserved;        /**< 0. */
} sg_linear_desc;

/** Initial value of an sg_linear_desc: W in x out, no bias, no activation. */
#define SG_LINEAR_DESC_INIT                                                                       \
  {                                                                                               \
    sizeof(sg_linear_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, NULL, SG_TRANSPOSE_N, \
        SG_ACTIVATION_NONE, SG_COMPUTE_EXACT, 0                                                   \
  }

/**
 * Descriptor of the gradients of a linear layer. A result whose data pointer is NULL is not computed; operands that are
 * then not needed are not looked at: W without dX, X without dW. Results overlap no other operand. Since 0.2.
 */
typedef struct sg_linear_backward_desc {
  size_t struct_size;   /**< sizeof(sg_linear_backward_desc), set by SG_LINEAR_BACKWARD_DESC_INIT. */
  sg_matrix dy;         /**< [in: rows x out] dY, rows x out. */
  sg_matrix x;          /**< [in for dw: rows x in] X, rows x in. */
  sg_matrix w;          /**< [in for dx: op_w(in x out)] W as stored. */
  sg_matrix dx;         /**< [out optional: rows x in] Result dX, rows x in. */
  sg_matrix dw;         /**< [inout optional: op_w(in x out)] Result dW, stored as W is: in x out, or out x in. */
  void *dbias;          /**< [inout optional: out of dbias_dtype] Result: `out` contiguous values of dbias_dtype; NULL: not computed. */
  sg_dtype dbias_dtype; /**< Default: f32. */
  sg_transpose op_w;           /**< As in sg_linear_desc, of W and dW. */
  sg_compute compute;   /**< The least accurate arithmetic allowed. Default: exact. */
  int32_t accumulate;   /**< 1: the gradients are added to dW and dbias, which are read then; 0: they replace them. */
} sg_linear_backward_desc;

/** Initial value of an sg_linear_backward_desc: nothing is computed; W in x out, no accumulation. */
#define SG_LINEAR_BACKWARD_DESC_INIT                                                                                 \
  {                                                                                                                  \
    sizeof(sg_linear_backward_desc), SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, SG_MATRIX_INIT, \
        NULL, SG_DTYPE_F32, SG_TRANSPOSE_N, SG_COMPUTE_EXACT, 0                                                      \
  }

/**
 * Submits a linear layer and returns at once. Recorded in a graph it is a GEMM: sg_graph_update changes it.
 * @param context The context that runs it.
 * @param desc The matrices; read during the call only. The caller owns the matrices; job.h states their lifetime.
 * @param submit Order, priority, completion queue, plan (its m, n and k are rows, out and in; A, B and C are X, W and Y);
 * NULL for the defaults.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return As sg_gemm_async; messages name the fields of desc.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_linear_async(sg_context *context, const sg_linear_desc *desc, const sg_submit *submit,
                                 sg_job **out_job);

/**
 * Submits a linear layer and waits for it: sg_linear_async and sg_job_wait in one. Uses 64 KiB of the caller's stack on the
 * cpu.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_linear(sg_context *context, const sg_linear_desc *desc, const sg_submit *submit);

/**
 * Submits the gradients of a linear layer as one job and returns at once. If it fails or is cancelled, parts of the results
 * may have been written.
 * @param context,out_job As in sg_linear_async.
 * @param desc The matrices; read during the call only. The caller owns the matrices; job.h states their lifetime.
 * @param submit As in sg_linear_async; of its plan only streams and memory_limit apply.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types),
 * SG_STATUS_OUT_OF_MEMORY (also if the device's memory does not do for the smallest tiles), SG_STATUS_BUSY (the context's
 * job limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed. Results without elements succeed, and so does a call
 * without results.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_linear_backward_async(sg_context *context, const sg_linear_backward_desc *desc,
                                          const sg_submit *submit, sg_job **out_job);

/**
 * Submits the gradients of a linear layer and waits for them: sg_linear_backward_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_linear_backward(sg_context *context, const sg_linear_backward_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_LINEAR_H */
