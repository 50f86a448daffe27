/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file recurrent.h
 * @brief Recurrent layers: LSTM and GRU over the steps of a batch of sequences, and their gradients, each as one job.
 *
 * X has `inputs` values, Y has `hidden` values at each step of each sequence. The state h begins as h0; Y is h after each
 * step, and the last one is hn. An LSTM has a second state c, from c0 to cn. With s the sigmoid, * between states
 * element by element, and the products W_ih * x + bias_ih and W_hh * h + bias_hh in one block of `hidden` values for
 * each gate:
 *
 *     LSTM: i, f, o = s(both), g = tanh(both)                 c = f * c + i * g              h = o * tanh(c)
 *     GRU:  r, z = s(both), n = tanh(W_in x + bias_in + r * (W_hn h + bias_hn))              h = (1 - z) * n + z * h
 *
 * With SG_CELL_GRU_RESET_BEFORE n = tanh(W_in x + bias_in + W_hn (r * h) + bias_hn). A layer in both directions is two
 * calls, one of them with `reverse`, that write the halves of the rows of Y.
 *
 * W_ih is gates * hidden x inputs, W_hh is gates * hidden x hidden, both row major and contiguous, with the gates' blocks
 * in an order of sg_gate_order; the biases have gates * hidden values.
 *
 * The type is f64, f32, f16 or bf16, the same for all operands but the reserve and gradients of weights. Gates and the
 * states that cells keep are in f64 for f64 and in f32 for the others; h is rounded once, and so it enters the next
 * step's product.
 *
 * The gradients need the reserve: activated gates and states of all steps, which the layer writes if it has the memory.
 * Sums of the gradients of a weight are in f64 for f64 and in f32 for the others. dX of a GRU is the sum of two
 * products, each of which is rounded to its type; so is the gradient of each gate before it is multiplied.
 *
 * Memory: operands are in any memory (memory.h).
 */
#ifndef STREAMGEMM_RECURRENT_H
#define STREAMGEMM_RECURRENT_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Steps of a batch of sequences. Strides are in elements, >= 0; the elements of a step are contiguous. Since 0.2. */
typedef struct sg_sequence {
  void *data;           /**< The first element. */
  int64_t step_stride;  /**< From one step to the next; at least the elements of a step, if there are several steps. */
  int64_t batch_stride; /**< From one sequence of the batch to the next; the same rule. */
  uint64_t reserved;    /**< 0. */
} sg_sequence;

/** Initial value of an sg_sequence: none. */
#define SG_SEQUENCE_INIT {NULL, 0, 0, 0}

/** Descriptor of a recurrent layer, an LSTM or a GRU over all steps of a batch of sequences. Results overlap no other operand,
 * except that hn may be h0, and cn may be c0. Since 0.2. */
typedef struct sg_recurrent_desc {
  size_t struct_size;       /**< sizeof(sg_recurrent_desc), set by SG_RECURRENT_DESC_INIT. */
  sg_cell cell;             /**< Default: LSTM. */
  sg_gate_order gate_order; /**< Order of the gates in weights and biases. */
  int64_t steps;            /**< >= 0; 0: hn is h0, and cn is c0. */
  int64_t batch;            /**< Sequences, >= 0. SG_RECURRENT_DESC_INIT sets 1. */
  int64_t inputs;           /**< Values of a step of X, >= 0. */
  int64_t hidden;           /**< Values of a step of Y, of h and of c, >= 0. */
  sg_sequence x;            /**< [in: steps x batch x inputs] X. */
  sg_sequence y;            /**< [out: steps x batch x hidden] The result Y. Its steps do not overlap. */
  const void *w_ih;         /**< [in: gates*hidden x inputs] Weights of X. */
  const void *w_hh;         /**< [in: gates*hidden x hidden] Weights of the state. */
  const void *bias_ih;      /**< [in optional: gates*hidden] NULL: zeros. */
  const void *bias_hh;      /**< [in optional: gates*hidden] NULL: zeros. */
  const void *h0;           /**< [in optional: batch x hidden by state_stride] batch x hidden; NULL: zeros. */
  const void *c0;           /**< [in optional: batch x hidden by state_stride] batch x hidden, of an LSTM; NULL: zeros. */
  void *hn;                 /**< [out optional: batch x hidden by state_stride] Result: the last h, batch x hidden; NULL: not stored. */
  void *cn;                 /**< [out optional: batch x hidden by state_stride] Result: the last c, batch x hidden, of an LSTM; NULL: not stored. */
  int64_t state_stride;     /**< Elements from one sequence to the next of h0, c0, hn and cn; 0: hidden. */
  void *reserve;            /**< [out optional: steps*batch x 5*hidden of wide] Result for the gradients: sg_recurrent_reserve_size bytes, aligned to 8; NULL: none. */
  sg_dtype dtype;           /**< Default: f32. */
  sg_compute compute;       /**< The least accurate arithmetic of the products allowed. Default: exact. */
  int32_t reverse;          /**< 1: from the last step to the first, which is the last one computed; 0: forward. */
  uint32_t reserved;        /**< 0. */
} sg_recurrent_desc;

/** Initial value of an sg_recurrent_desc: an LSTM of one sequence without steps. */
#define SG_RECURRENT_DESC_INIT                                                                                      \
  {                                                                                                                 \
    sizeof(sg_recurrent_desc), SG_CELL_LSTM, SG_GATE_ORDER_DEFAULT, 0, 1, 0, 0, SG_SEQUENCE_INIT, SG_SEQUENCE_INIT, \
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, SG_DTYPE_F32, SG_COMPUTE_EXACT, 0, 0               \
  }

/**
 * Descriptor of the gradients of a recurrent layer. A result that is NULL is not computed; operands that are then not
 * needed are not looked at: W_ih without dX, X without dW_ih, Y and h0 without dW_hh. Results overlap no other operand.
 * Since 0.2.
 */
typedef struct sg_recurrent_backward_desc {
  size_t struct_size;       /**< sizeof(sg_recurrent_backward_desc), set by SG_RECURRENT_BACKWARD_DESC_INIT. */
  sg_cell cell;             /**< LSTM or GRU. */
  sg_gate_order gate_order; /**< This and the next four as in the layer. */
  int64_t steps;            /**< >= 0. */
  int64_t batch;            /**< >= 0. SG_RECURRENT_BACKWARD_DESC_INIT sets 1. */
  int64_t inputs;           /**< >= 0. */
  int64_t hidden;           /**< >= 0. */
  sg_sequence x;            /**< [in for dw_ih: steps x batch x inputs] X. */
  sg_sequence y;            /**< [in for dw_hh: steps x batch x hidden] Y as the layer computed it. */
  const void *w_ih;         /**< [in for dx: gates*hidden x inputs] Weights of X. */
  const void *w_hh;         /**< [in: gates*hidden x hidden] Weights of the state. */
  const void *h0;           /**< [in optional for dw_hh: batch x hidden by state_stride] As in the layer. */
  const void *reserve;      /**< [in: steps*batch x 5*hidden of wide] As the layer left it. */
  sg_sequence dy;           /**< [in optional: steps x batch x hidden] Gradient of Y; data NULL: zeros. */
  const void *dhn;          /**< [in optional: batch x hidden by state_stride] Gradient of hn, batch x hidden; NULL: zeros. */
  const void *dcn;          /**< [in optional: batch x hidden by state_stride] Gradient of cn, of an LSTM; NULL: zeros. */
  sg_sequence dx;           /**< [out optional: steps x batch x inputs] Result: gradient of X. Its steps do not overlap. */
  void *dw_ih;              /**< [inout optional: gates*hidden x inputs of gradient_dtype] Result: gradient of W_ih, of gradient_dtype, stored like it. */
  void *dw_hh;              /**< [inout optional: gates*hidden x hidden of gradient_dtype] Result: gradient of W_hh, of gradient_dtype. */
  void *dbias_ih;           /**< [inout optional: gates*hidden of gradient_dtype] Result: gradient of bias_ih, of gradient_dtype. */
  void *dbias_hh;           /**< [inout optional: gates*hidden of gradient_dtype] Result: gradient of bias_hh, of gradient_dtype. */
  void *dh0;                /**< [out optional: batch x hidden by state_stride] Result: gradient of h0, batch x hidden. */
  void *dc0;                /**< [out optional: batch x hidden by state_stride] Result: gradient of c0, of an LSTM. */
  int64_t state_stride;     /**< Elements from one sequence to the next of h0, dhn, dcn, dh0 and dc0; 0: hidden. */
  sg_dtype dtype;           /**< As in the layer. Default: f32. */
  sg_dtype gradient_dtype;  /**< dtype, or f32 with f16 and bf16. Default: f32. */
  sg_compute compute;       /**< The least accurate arithmetic of the products allowed. Default: exact. */
  int32_t reverse;          /**< As in the layer. */
  int32_t accumulate; /**< 1: gradients are added to dW_ih, dW_hh and both dbias, which are read then; 0: they replace
                           them. */
  uint32_t reserved;  /**< 0. */
} sg_recurrent_backward_desc;

/** Initial value of an sg_recurrent_backward_desc: of an LSTM; nothing is computed. */
#define SG_RECURRENT_BACKWARD_DESC_INIT                                                                             \
  {                                                                                                                 \
    sizeof(sg_recurrent_backward_desc), SG_CELL_LSTM, SG_GATE_ORDER_DEFAULT, 0, 1, 0, 0, SG_SEQUENCE_INIT,          \
        SG_SEQUENCE_INIT, NULL, NULL, NULL, NULL, SG_SEQUENCE_INIT, NULL, NULL, SG_SEQUENCE_INIT, NULL, NULL, NULL, \
        NULL, NULL, NULL, 0, SG_DTYPE_F32, SG_DTYPE_F32, SG_COMPUTE_EXACT, 0, 0, 0                                  \
  }

/**
 * The bytes of the reserve of a layer: 5 values of f64 for f64, otherwise of f32, for each value of Y.
 * @param desc The layer; of its fields steps, batch, hidden and dtype count.
 * @param[out] out_bytes The size; 0 on failure.
 * @return SG_STATUS_OK, SG_STATUS_INVALID_ARGUMENT (also if the size does not fit 63 bits), SG_STATUS_UNSUPPORTED
 * (type). Never blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_recurrent_reserve_size(const sg_recurrent_desc *desc, uint64_t *out_bytes);

/**
 * Submits a recurrent layer and returns at once. If it fails or is cancelled, parts of the results may have been
 * written.
 * @param context The context that runs it.
 * @param desc The operands; read during the call only. The caller owns the memory; job.h states its lifetime.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types), SG_STATUS_OUT_OF_MEMORY (also if there are too many steps),
 * SG_STATUS_BUSY (the context's job limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed. Empty results
 * succeed. The job fails with SG_STATUS_OUT_OF_MEMORY if the device has no memory left for the gates. Never blocks on
 * work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_recurrent_async(sg_context *context, const sg_recurrent_desc *desc, const sg_submit *submit,
                                    sg_job **out_job);

/**
 * Submits a recurrent layer and waits for it: sg_recurrent_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_recurrent(sg_context *context, const sg_recurrent_desc *desc, const sg_submit *submit);

/**
 * Submits the gradients of a recurrent layer as one job and returns at once.
 * @param context The context that runs it.
 * @param submit,out_job As in sg_recurrent_async.
 * @param desc The operands; read during the call only. The caller owns the memory; job.h states its lifetime.
 * @return As sg_recurrent_async; also SG_STATUS_UNSUPPORTED for SG_CELL_GRU_RESET_BEFORE. A call without results
 * succeeds. Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_recurrent_backward_async(sg_context *context, const sg_recurrent_backward_desc *desc,
                                             const sg_submit *submit, sg_job **out_job);

/**
 * Submits the gradients of a recurrent layer and waits for them: sg_recurrent_backward_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_recurrent_backward(sg_context *context, const sg_recurrent_backward_desc *desc,
                                       const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_RECURRENT_H */
