/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file attention.h
 * @brief Attention: O = softmax(scale * Q * K^T + mask) * V for each head of each batch, as one job, and its gradients.
 *
 * Q has `queries` tokens of `width` elements in each of `heads` heads, K `keys` tokens of `width` in each of `kv_heads`, V
 * `keys` tokens of `value_width`, O `queries` tokens of `value_width` in each of `heads`. Query head h uses key head
 * h / (heads / kv_heads).
 *
 * The type is f64, f32, f16 or bf16, the same for all operands. Products, scores and the softmax are in f64 for f64 and in f32
 * for the other types. Of f16 and bf16 each weight, the exponential of a score less the query's largest, is rounded to the type
 * once; the sum of the weighted values, in f32 (where the sum of values near bf16's largest overflows), is divided by the sum of
 * the rounded weights and rounded once to O, which therefore is a mean of values: it exceeds none. Where a GPU's cuDNN computes it
 * (docs/attention.md), the divisor is the sum of the weights before they are rounded: O may exceed the largest value by a rounding.
 *
 * Masks hide keys; all that are given apply together, and a key that one of them hides is hidden:
 * - mask: with SG_MASK_CAUSAL query i has the keys j <= i + mask_offset. With SG_MASK_CAUSAL_FROM_END it has those up to
 *   i + key_length - query_length + mask_offset, where the lengths are those of its batch: the last query has the last key.
 * - window: of the keys that a causal mask leaves, query i has the last `window` positions up to the limit of the mask.
 * - query_lengths, key_lengths: the lengths of the sequences of each batch, i32, read when the job runs, so that the jobs of a
 *   graph follow them. Keys from key_lengths[b] on are hidden, and queries from query_lengths[b] on have no keys. A length below 0
 *   counts as 0, one above the descriptor's number of tokens as that number.
 * - visible: a byte for each score; 0 hides the key, any other value shows it.
 * - bias: is added to scale * Q * K^T in the type of the scores; minus infinity hides the key.
 * A query without visible keys gets zeros and adds nothing to gradients. Hidden keys, a NaN in their scores or bias too, have no
 * effect, but values, hidden ones too, must be finite: 0 times NaN or infinity is NaN. A score of a visible key that is NaN or plus
 * infinity makes the query's result NaN.
 *
 * Memory: operands are in any memory (memory.h). The scores of as many queries as
 * the workspace has room for exist at a time, in memory of the context, so that it is bounded for any number of tokens.
 */
#ifndef STREAMGEMM_ATTENTION_H
#define STREAMGEMM_ATTENTION_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** An operand of an attention. Strides are in elements, >= 0; the elements of a token are contiguous. Since 0.2. */
typedef struct sg_heads {
  void *data;           /**< The first element. */
  int64_t batch_stride; /**< From one batch to the next. */
  int64_t head_stride;  /**< From one head to the next. */
  int64_t token_stride; /**< From one token to the next; at least the elements of a token, if there are several. */
  uint64_t reserved;    /**< 0. */
} sg_heads;

/** Initial value of an sg_heads: none. */
#define SG_HEADS_INIT {NULL, 0, 0, 0, 0}

/** Descriptor of an attention, O = softmax(scale * Q * K^T + mask) * V for each head of each batch. Since 0.2. */
typedef struct sg_attention_desc {
  size_t struct_size;  /**< sizeof(sg_attention_desc), set by SG_ATTENTION_DESC_INIT. */
  sg_heads q;          /**< [in: batch x heads x queries x width] Q. */
  sg_heads k;          /**< [in: batch x kv_heads x keys x width] K. */
  sg_heads v;          /**< [in: batch x kv_heads x keys x value_width] V. */
  sg_heads o;          /**< [out: batch x heads x queries x value_width] The result. Its tokens do not overlap, nor other operands. */
  sg_dtype dtype;      /**< Of all operands. Default: f32. */
  sg_mask mask;        /**< Default: none. */
  int64_t mask_offset; /**< Of a causal mask: 0 for as many keys as queries, and the number of earlier keys if there are more;
                            0 of one from the end. May be negative; without a mask it is 0. */
  int64_t batch;       /**< >= 0. SG_ATTENTION_DESC_INIT sets 1. */
  int64_t heads;       /**< Heads of Q and O; >= 0, a multiple of kv_heads. SG_ATTENTION_DESC_INIT sets 1. */
  int64_t kv_heads;    /**< Heads of K and V; >= 1. SG_ATTENTION_DESC_INIT sets 1. */
  int64_t queries;     /**< Tokens of Q and O; >= 0. */
  int64_t keys;        /**< Tokens of K and V; >= 0. */
  int64_t width;       /**< Elements of a token of Q and K; >= 0. */
  int64_t value_width; /**< Elements of a token of V and O; >= 0. */
  double scale;        /**< Finite; 0: 1 / sqrt(width). */
  uint64_t workspace;  /**< Limit of the memory for scores, in bytes, which some devices do not need (docs/attention.md); 0: a quarter of the device's, 256 MiB at most; on the cpu
                            1 MiB for each core. */
  sg_compute compute;  /**< The least accurate arithmetic allowed. Default: exact. */
  uint32_t reserved;   /**< 0. */
  sg_heads bias;       /**< [in optional: batch x heads x queries x keys] Is added to the scores, from query to query by token_stride; any
                            stride may be 0, which repeats it. data NULL: none. */
  sg_heads visible;    /**< [in optional: batch x heads x queries x keys of i8] A byte for each score, 0 for a hidden key; strides as of the
                            bias, in bytes. data NULL: none. */
  const int32_t *query_lengths; /**< [in optional: batch of i32] The queries of each batch that exist, contiguous; NULL: all. */
  const int32_t *key_lengths;   /**< [in optional: batch of i32] The keys of each batch that exist, contiguous; NULL: all. */
  int64_t window;      /**< Of a causal mask: query i has no keys j <= limit - window, where the mask's limit is its last key. 0: no window. */
} sg_attention_desc;

/** Initial value of an sg_attention_desc: one batch, one head, no mask, scale 1 / sqrt(width). */
#define SG_ATTENTION_DESC_INIT                                                                                         \
  {                                                                                                                    \
    sizeof(sg_attention_desc), SG_HEADS_INIT, SG_HEADS_INIT, SG_HEADS_INIT, SG_HEADS_INIT, SG_DTYPE_F32,               \
        SG_MASK_NONE, 0, 1, 1, 1, 0, 0, 0, 0, 0.0, 0, SG_COMPUTE_EXACT, 0, SG_HEADS_INIT, SG_HEADS_INIT, NULL, NULL, 0 \
  }

/**
 * Submits an attention and returns at once.
 * @param context The context that runs it.
 * @param desc The operands; read during the call only. The caller owns the memory; job.h states its lifetime.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types), SG_STATUS_OUT_OF_MEMORY (also if the workspace is too small for one query),
 * SG_STATUS_BUSY (the context's job limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed. An empty O succeeds.
 * The job fails with SG_STATUS_OUT_OF_MEMORY if the device has no memory left for the scores.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_attention_async(sg_context *context, const sg_attention_desc *desc, const sg_submit *submit,
                                    sg_job **out_job);

/**
 * Submits an attention and waits for it: sg_attention_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_attention(sg_context *context, const sg_attention_desc *desc, const sg_submit *submit);

/**
 * Descriptor of the gradients of an attention, from dO, the gradient of the loss with respect to O. The weights are computed
 * again from Q and K, with the same masks; O itself is not needed. A bias has no gradient here. A result whose data pointer is NULL is not computed. Results overlap no other
 * operand; where the heads of each token follow each other and tokens are evenly spaced, as in a packed array of dQ, dK and dV,
 * bytes between tokens do not count. All values must be finite. Since 0.2.
 */
typedef struct sg_attention_backward_desc {
  size_t struct_size;  /**< sizeof(sg_attention_backward_desc), set by SG_ATTENTION_BACKWARD_DESC_INIT. */
  sg_heads q;          /**< [in: batch x heads x queries x width] Q. */
  sg_heads k;          /**< [in: batch x kv_heads x keys x width] K. */
  sg_heads v;          /**< [in: batch x kv_heads x keys x value_width] V. */
  sg_heads dout;        /**< [in: batch x heads x queries x value_width] dO, of O's form. */
  sg_heads dq;         /**< [out optional: batch x heads x queries x width] Result dQ, of Q's form. Tokens of results do not overlap. */
  sg_heads dk;         /**< [out optional: batch x kv_heads x keys x width] Result dK, of K's form: the sum over the query heads that use a key head. */
  sg_heads dv;         /**< [out optional: batch x kv_heads x keys x value_width] Result dV, of V's form: likewise. */
  sg_dtype dtype;      /**< This and the next eight as in sg_attention_desc, with the values of the attention. */
  sg_mask mask;        /**< Default: none. */
  int64_t mask_offset; /**< Of a causal mask. */
  int64_t batch;       /**< SG_ATTENTION_BACKWARD_DESC_INIT sets 1. */
  int64_t heads;       /**< SG_ATTENTION_BACKWARD_DESC_INIT sets 1. */
  int64_t kv_heads;    /**< SG_ATTENTION_BACKWARD_DESC_INIT sets 1. */
  int64_t queries;     /**< Tokens of Q and dO. */
  int64_t keys;        /**< Tokens of K and V. */
  int64_t width;       /**< Elements of a token of Q and K. */
  int64_t value_width; /**< Elements of a token of V and dO. */
  double scale;        /**< Finite; 0: 1 / sqrt(width). */
  uint64_t workspace;  /**< As in sg_attention_desc. For f16 and bf16 the sums of dK and dV of some heads are kept in f32 beside
                            it. */
  sg_compute compute;  /**< The least accurate arithmetic allowed. Default: exact. */
  uint32_t reserved;   /**< 0. */
  sg_heads bias;       /**< [in optional: batch x heads x queries x keys] This and the next four as in sg_attention_desc, with the values of the
                            attention. */
  sg_heads visible;    /**< [in optional: batch x heads x queries x keys of i8] A byte for each score. */
  const int32_t *query_lengths; /**< [in optional: batch of i32] The queries of each batch that exist. */
  const int32_t *key_lengths;   /**< [in optional: batch of i32] The keys of each batch that exist. */
  int64_t window;      /**< Of a causal mask. */
} sg_attention_backward_desc;

/** Initial value of an sg_attention_backward_desc: nothing is computed. */
#define SG_ATTENTION_BACKWARD_DESC_INIT                                                                                \
  {                                                                                                                    \
    sizeof(sg_attention_backward_desc), SG_HEADS_INIT, SG_HEADS_INIT, SG_HEADS_INIT, SG_HEADS_INIT, SG_HEADS_INIT,     \
        SG_HEADS_INIT, SG_HEADS_INIT, SG_DTYPE_F32, SG_MASK_NONE, 0, 1, 1, 1, 0, 0, 0, 0, 0.0, 0, SG_COMPUTE_EXACT, 0, \
        SG_HEADS_INIT, SG_HEADS_INIT, NULL, NULL, 0                                                                    \
  }

/**
 * Submits the gradients of an attention as one job and returns at once. If it fails or is cancelled, parts of the results may
 * have been written.
 * @param context The context that runs it.
 * @param submit,out_job As in sg_attention_async.
 * @param desc The operands; read during the call only. The caller owns the memory; job.h states its lifetime.
 * @return As sg_attention_async. Results without elements succeed, and so does a call without results.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_attention_backward_async(sg_context *context, const sg_attention_backward_desc *desc,
                                             const sg_submit *submit, sg_job **out_job);

/**
 * Submits the gradients of an attention and waits for them: sg_attention_backward_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_attention_backward(sg_context *context, const sg_attention_backward_desc *desc,
                                       const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_ATTENTION_H */
