/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file pool.h
 * @brief Pooling of images: the maximum or the average of each window, and the gradient.
 *
 * The rules of layers.h for types, arithmetic, memory and order apply.
 * Images, windows and their number are those of conv.h; pixels outside an image take no part in a maximum. Y has the channels of X, of
 * out_h x out_w pixels each, in the order of X.
 */
#ifndef STREAMGEMM_POOL_H
#define STREAMGEMM_POOL_H

#include <streamgemm/conv.h>
#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Descriptor of a pooling of images. Since 0.2. */
typedef struct sg_pool2d_desc {
  size_t struct_size;           /**< sizeof(sg_pool2d_desc), set by SG_POOL2D_DESC_INIT. */
  sg_images x;                  /**< [in: images x channels x height x width] X. */
  sg_images y;                  /**< [out: images x channels x out_h x out_w] The result; overlaps no operand. */
  int64_t images;               /**< >= 0. SG_POOL2D_DESC_INIT sets 1. */
  int64_t channels;             /**< >= 0, < 2^29. */
  int64_t height;               /**< Of X; >= 0, < 2^29. */
  int64_t width;                /**< Of X; >= 0, < 2^29. */
  sg_windows windows;           /**< SG_POOL2D_DESC_INIT: each pixel. */
  sg_image_layout image_layout; /**< Of X and Y. Default: NCHW. */
  sg_dtype dtype;               /**< Of X and Y: f64, f32, f16 or bf16. Default: f32. */
  sg_pooling pooling;           /**< Default: the maximum. */
  uint32_t reserved;            /**< 0. */
} sg_pool2d_desc;

/** Initial value of an sg_pool2d_desc: one image, the maximum. */
#define SG_POOL2D_DESC_INIT                                                                             \
  {                                                                                                     \
    sizeof(sg_pool2d_desc), SG_IMAGES_INIT, SG_IMAGES_INIT, 1, 0, 0, 0, SG_WINDOWS_INIT, SG_IMAGE_NCHW, \
        SG_DTYPE_F32, SG_POOLING_MAX, 0                                                                 \
  }

/**
 * Descriptor of the gradient of a pooling. A pixel of dX is the sum over the windows that have it, in f64 for f64 and in f32 for the
 * others: of a maximum dY of the windows whose first greatest pixel it is, row by row, and of those where it is the first NaN; of an average dY
 * divided by the number that the average was divided by. Since 0.2.
 */
typedef struct sg_pool2d_backward_desc {
  size_t struct_size;           /**< sizeof(sg_pool2d_backward_desc), set by SG_POOL2D_BACKWARD_DESC_INIT. */
  sg_images dy;                 /**< [in: images x channels x out_h x out_w] dY. */
  sg_images x;                  /**< [in optional: images x channels x height x width] X, as given to sg_pool2d_async; for the maximum only. */
  sg_images dx;                 /**< [out: images x channels x height x width] The result; overlaps no operand. */
  int64_t images;               /**< As in sg_pool2d_desc, and so are the fields below. */
  int64_t channels;             /**< >= 0, < 2^29. */
  int64_t height;               /**< Of X; >= 0, < 2^29. */
  int64_t width;                /**< Of X; >= 0, < 2^29. */
  sg_windows windows;           /**< SG_POOL2D_BACKWARD_DESC_INIT: each pixel. */
  sg_image_layout image_layout; /**< Of X, dX and dY. Default: NCHW. */
  sg_dtype dtype;               /**< Of X, dX and dY: f64, f32, f16 or bf16. Default: f32. */
  sg_pooling pooling;           /**< Default: the maximum. */
  uint32_t reserved;            /**< 0. */
} sg_pool2d_backward_desc;

/** Initial value of an sg_pool2d_backward_desc: one image, the maximum. */
#define SG_POOL2D_BACKWARD_DESC_INIT                                                                              \
  {                                                                                                               \
    sizeof(sg_pool2d_backward_desc), SG_IMAGES_INIT, SG_IMAGES_INIT, SG_IMAGES_INIT, 1, 0, 0, 0, SG_WINDOWS_INIT, \
        SG_IMAGE_NCHW, SG_DTYPE_F32, SG_POOLING_MAX, 0                                                            \
  }

/**
 * Submits a pooling and returns at once.
 * @param context The context that runs it.
 * @param desc The operands; read during the call only.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job
 * limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_pool2d_async(sg_context *context, const sg_pool2d_desc *desc, const sg_submit *submit,
                                 sg_job **out_job);

/**
 * Submits a pooling and waits for it: sg_pool2d_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_pool2d(sg_context *context, const sg_pool2d_desc *desc, const sg_submit *submit);

/**
 * Submits the gradient of a pooling and returns at once.
 * @param context,desc As in sg_pool2d_async.
 * @param submit,out_job As in sg_pool2d_async.
 * @return As sg_pool2d_async.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_pool2d_backward_async(sg_context *context, const sg_pool2d_backward_desc *desc,
                                          const sg_submit *submit, sg_job **out_job);

/**
 * Submits the gradient of a pooling and waits for it: sg_pool2d_backward_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_pool2d_backward(sg_context *context, const sg_pool2d_backward_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_POOL_H */
