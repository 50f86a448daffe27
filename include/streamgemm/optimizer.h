/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file optimizer.h
 * @brief Steps of optimizers: SGD with momentum, Adam and AdamW.
 *
 * The rules of layers.h for types, arithmetic, memory and order apply.
 * A step updates one tensor of parameters in place. A graph (graph.h) of steps updates many tensors as one job; sg_graph_update sets
 * the number of Adam's step, or a new rate. States are of f64 for f64, and of f32 for the other types.
 * Rates and other numbers that f32 does not have are refused where the arithmetic is in f32.
 */
#ifndef STREAMGEMM_OPTIMIZER_H
#define STREAMGEMM_OPTIMIZER_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/**
 * Descriptor of a step of stochastic gradient descent: g = gradient + weight_decay * parameters; with a momentum
 * momentum_buffer = momentum * momentum_buffer + g, and g = g + momentum * momentum_buffer with nesterov, otherwise momentum_buffer; parameters -= rate * g. As
 * PyTorch's SGD without dampening; the momentum begins at zeros.
 */
typedef struct sg_sgd_desc {
  size_t struct_size;    /**< sizeof(sg_sgd_desc), set by SG_SGD_DESC_INIT. */
  void *parameters;      /**< [inout: elements] Contiguous values of dtype. */
  const void *gradient;  /**< [in: elements] Contiguous values of dtype. */
  void *momentum_buffer; /**< [inout optional: elements of wide] Contiguous values; NULL without a momentum. */
  int64_t elements;      /**< >= 0. */
  double rate;           /**< The learning rate; finite. SG_SGD_DESC_INIT sets 0.01. */
  double momentum;       /**< From 0 to 1; not 0 needs a momentum_buffer. */
  double weight_decay;   /**< >= 0, finite. */
  sg_dtype dtype;        /**< Of parameters and gradient: f64, f32, f16 or bf16. Default: f32. */
  int32_t nesterov;      /**< 1: Nesterov's momentum; 0: the usual one. */
} sg_sgd_desc;

/** Initial value of an sg_sgd_desc: rate 0.01, no momentum, no decay. */
#define SG_SGD_DESC_INIT                                                                                              \
  {                                                                                                                   \
    sizeof(sg_sgd_desc), NULL, NULL, NULL, 0, 0.01, 0.0, 0.0, SG_DTYPE_F32, 0                                         \
  }

/**
 * Descriptor of a step of Adam, number t from 1 on: g = gradient + weight_decay * parameters, or with decoupled g = gradient and
 * parameters -= rate * weight_decay * parameters (AdamW); first = beta1 * first + (1 - beta1) * g; second = beta2 * second + (1 - beta2) * g^2;
 * parameters -= rate * (first / (1 - beta1^t)) / (sqrt(second / (1 - beta2^t)) + epsilon). As PyTorch's Adam and AdamW; the moments begin at zeros.
 */
typedef struct sg_adam_desc {
  size_t struct_size;   /**< sizeof(sg_adam_desc), set by SG_ADAM_DESC_INIT. */
  void *parameters;     /**< [inout: elements] Contiguous values of dtype. */
  const void *gradient; /**< [in: elements] Contiguous values of dtype. */
  void *first;          /**< [inout: elements of wide] The first moment: contiguous values. */
  void *second;         /**< [inout: elements of wide] The second moment: contiguous values. */
  int64_t elements;     /**< >= 0. */
  int64_t step;         /**< Number t of the step; >= 1. SG_ADAM_DESC_INIT sets 1. */
  double rate;          /**< The learning rate; finite. SG_ADAM_DESC_INIT sets 0.001. */
  double beta1;         /**< >= 0, < 1. SG_ADAM_DESC_INIT sets 0.9. */
  double beta2;         /**< >= 0, < 1. SG_ADAM_DESC_INIT sets 0.999. */
  double epsilon;       /**< >= 0, finite. SG_ADAM_DESC_INIT sets 1e-8. */
  double weight_decay;  /**< >= 0, finite. */
  sg_dtype dtype;       /**< Of parameters and gradient: f64, f32, f16 or bf16. Default: f32. */
  int32_t decoupled;    /**< 1: AdamW; 0: Adam. */
} sg_adam_desc;

/** Initial value of an sg_adam_desc: the first step, rate 0.001, betas 0.9 and 0.999, epsilon 1e-8, no decay. */
#define SG_ADAM_DESC_INIT                                                                                             \
  {                                                                                                                   \
    sizeof(sg_adam_desc), NULL, NULL, NULL, NULL, 0, 1, 0.001, 0.9, 0.999, 1e-8, 0.0, SG_DTYPE_F32, 0                 \
  }

/**
 * Submits a step of SGD and returns at once.
 * @param context The context that runs it.
 * @param desc The operands; read during the call only.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job
 * limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread.
 */
SG_API sg_status sg_sgd_async(sg_context *context, const sg_sgd_desc *desc, const sg_submit *submit,
                              sg_job **out_job);

/**
 * Submits a step of SGD and waits for it: sg_sgd_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread.
 */
SG_API sg_status sg_sgd(sg_context *context, const sg_sgd_desc *desc, const sg_submit *submit);

/**
 * Submits a step of Adam or AdamW and returns at once.
 * @param context,desc As in sg_sgd_async.
 * @param submit,out_job As in sg_sgd_async.
 * @return As sg_sgd_async.
 * Never blocks on work in flight, unless the context has a job limit. Any thread.
 */
SG_API sg_status sg_adam_async(sg_context *context, const sg_adam_desc *desc, const sg_submit *submit,
                               sg_job **out_job);

/**
 * Submits a step of Adam or AdamW and waits for it: sg_adam_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread.
 */
SG_API sg_status sg_adam(sg_context *context, const sg_adam_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_OPTIMIZER_H */
