/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file conv.h
 * @brief Convolutions of images and their gradients, each as one job; the windows of images as a matrix, and back.
 *
 * A batch of `images` images has `channels` channels of height x width pixels each, in the order of an sg_image_layout.
 * Windows of kernel_h x kernel_w pixels, stride_h and stride_w pixels apart, begin pad_top rows above and pad_left columns
 * left of an image; the pixels of a window are dilation_h and dilation_w apart. Outside the image there are zeros.
 *
 *     out_h = (height + pad_top + pad_bottom - dilation_h * (kernel_h - 1) - 1) / stride_h + 1, rounded down
 *
 * and out_w likewise; 0 if the padded image is smaller than a window, or if the image has no pixels.
 *
 * The matrix of windows has a row for each window, row (n * out_h + i) * out_w + j for window (i, j) of image n, and a
 * column for each pixel of a window in each channel, in the order of an sg_filter_layout: those of the filters.
 *
 * The rules of layers.h for order, overlap and graphs apply. A refused call accesses
 * nothing. Operands without elements succeed.
 *
 * sg_conv2d is Y = activation(conv(X, W) + bias): channel o of window (i, j) is the sum over the windows' pixels and the
 * channels of o's group of X times W, plus bias[o]. Y has out_channels channels of out_h x out_w, in the order of X. With
 * `groups` groups, output channel o has the input channels of group o / (out_channels / groups). As in PyTorch and ONNX, the
 * filters are not mirrored.
 *
 * The type is f64, f32, f16 or bf16, the same for X, W, bias and Y. Sums are kept in f64 for f64 and in f32 for the others,
 * and rounded once.
 *
 * Memory: of sg_im2col and sg_col2im as in layers.h. Of convolutions any, each operand by itself. With images on the host, the
 * batch crosses the link in parts, one coming in while another is computed and a third goes out; the filters cross once. The
 * matrix of windows exists for some windows at a time, in memory of the context; the windows of one block are taken while the
 * GEMM of another runs. Windows of one pixel with stride 1 and no padding need no matrix.
 */
#ifndef STREAMGEMM_CONV_H
#define STREAMGEMM_CONV_H

#include <streamgemm/job.h>
#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** The order of the elements of an image. Since 0.2. */
typedef enum sg_image_layout SG_ENUM_INT {
  SG_IMAGE_NCHW = 0, /**< Channel by channel; within each, rows of pixels. */
  SG_IMAGE_NHWC = 1  /**< Rows of pixels, each of `channels` consecutive elements. */
} sg_image_layout;

/** The order of the elements of a filter. Since 0.2. */
typedef enum sg_filter_layout SG_ENUM_INT {
  SG_FILTER_OIHW = 0, /**< Channel by channel; within each, kernel_h rows of kernel_w. As PyTorch and ONNX store filters. */
  SG_FILTER_OHWI = 1  /**< kernel_h rows of kernel_w, each of as many consecutive elements as there are channels. */
} sg_filter_layout;

/** Images in memory; the elements of an image are contiguous. Since 0.2. */
typedef struct sg_images {
  void *data;        /**< The first element of the first image. */
  int64_t stride;    /**< Elements from one image to the next, at least those of an image; 0: exactly those. */
  uint64_t reserved; /**< 0. */
} sg_images;

/** Initial value of an sg_images: none. */
#define SG_IMAGES_INIT {NULL, 0, 0}

/** The windows of a convolution. All are less than 2^29. Since 0.2. */
typedef struct sg_windows {
  int64_t kernel_h;   /**< Rows of a window; > 0. */
  int64_t kernel_w;   /**< Columns of a window; > 0. */
  int64_t stride_h;   /**< Rows from window to window; > 0. */
  int64_t stride_w;   /**< Columns from window to window; > 0. */
  int64_t dilation_h; /**< Rows from one to the next in a window; > 0. */
  int64_t dilation_w; /**< Columns from one to the next in a window; > 0. */
  int64_t pad_top;    /**< Rows of zeros above an image; >= 0. */
  int64_t pad_left;   /**< Columns of zeros left of an image; >= 0. */
  int64_t pad_bottom; /**< Rows of zeros below an image; >= 0. */
  int64_t pad_right;  /**< Columns of zeros right of an image; >= 0. */
  uint64_t reserved;  /**< 0. */
} sg_windows;

/** Initial value of an sg_windows: each pixel. */
#define SG_WINDOWS_INIT {1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}

/** Descriptor of the matrix of windows of images. Any element type, which is the matrix's. Since 0.2. */
typedef struct sg_im2col_desc {
  size_t struct_size;           /**< sizeof(sg_im2col_desc), set by SG_IM2COL_DESC_INIT. */
  sg_images x;                  /**< [in: images x channels x height x width] The images. */
  sg_matrix matrix;             /**< [out: images*out_h*out_w x used*kernel_h*kernel_w] The result, images*out_h*out_w x used_channels*kernel_h*kernel_w. It overlaps no channel
                                     that is used; it may overlap others. */
  int64_t images;               /**< >= 0. SG_IM2COL_DESC_INIT sets 1. */
  int64_t channels;             /**< Of an image; >= 0, < 2^29. */
  int64_t height;               /**< >= 0, < 2^29. */
  int64_t width;                /**< >= 0, < 2^29. */
  int64_t first_channel;        /**< The first one that the matrix has; >= 0: a group of channels is a range. */
  int64_t used_channels;        /**< Number of channels that it has; 0: all from first_channel. */
  sg_windows windows;           /**< SG_IM2COL_DESC_INIT: each pixel. */
  sg_image_layout image_layout; /**< Default: NCHW. */
  sg_filter_layout columns;     /**< Order of the matrix's columns. Default: OIHW. */
} sg_im2col_desc;

/** Initial value of an sg_im2col_desc. */
#define SG_IM2COL_DESC_INIT                                                                                   \
  {                                                                                                           \
    sizeof(sg_im2col_desc), SG_IMAGES_INIT, SG_MATRIX_INIT, 1, 0, 0, 0, 0, 0, SG_WINDOWS_INIT, SG_IMAGE_NCHW, \
        SG_FILTER_OIHW                                                                                        \
  }

/**
 * Descriptor of the sum of windows: each element of the images becomes the sum of the elements of the matrix that
 * sg_im2col takes from it, 0 if there is none. That is the gradient of sg_im2col. The type is f64, f32, f16 or bf16; sums
 * are kept in f64 for f64 and in f32 for the others, always in the same order, and rounded once. Since 0.2.
 */
typedef struct sg_col2im_desc {
  size_t struct_size;           /**< sizeof(sg_col2im_desc), set by SG_COL2IM_DESC_INIT. */
  sg_matrix matrix;             /**< [in: images*out_h*out_w x used*kernel_h*kernel_w] The matrix of windows. */
  sg_images x;                  /**< [inout: images x channels x height x width] The result: images of the matrix's type. Of channels that are not used nothing is
                                     written, and the matrix may overlap them. */
  int64_t images;               /**< >= 0. SG_COL2IM_DESC_INIT sets 1. */
  int64_t channels;             /**< As in sg_im2col_desc, and so are the fields below. */
  int64_t height;               /**< Of an image. */
  int64_t width;                /**< Of an image. */
  int64_t first_channel;        /**< The first channel of the matrix. */
  int64_t used_channels;        /**< Number of channels of the matrix; 0: all from first_channel. */
  sg_windows windows;           /**< SG_COL2IM_DESC_INIT: each pixel. */
  sg_image_layout image_layout; /**< Default: NCHW. */
  sg_filter_layout columns;     /**< Order of the matrix's columns. Default: OIHW. */
  int32_t accumulate;           /**< 1: the sums are added to the images, which are read then; 0: they replace them. */
  uint32_t reserved;            /**< 0. */
} sg_col2im_desc;

/** Initial value of an sg_col2im_desc. */
#define SG_COL2IM_DESC_INIT                                                                                   \
  {                                                                                                           \
    sizeof(sg_col2im_desc), SG_MATRIX_INIT, SG_IMAGES_INIT, 1, 0, 0, 0, 0, 0, SG_WINDOWS_INIT, SG_IMAGE_NCHW, \
        SG_FILTER_OIHW, 0, 0                                                                                  \
  }

/** Descriptor of a convolution, Y = activation(conv(X, W) + bias). Since 0.2. */
typedef struct sg_conv2d_desc {
  size_t struct_size;             /**< sizeof(sg_conv2d_desc), set by SG_CONV2D_DESC_INIT. */
  sg_images x;                    /**< [in: images x channels x height x width] X. */
  sg_images y;                    /**< [out: images x out_channels x out_h x out_w] The result; overlaps no other operand. */
  const void *w;                  /**< [in: out_channels x channels/groups x kernel_h x kernel_w] The filters: out_channels x channels/groups x kernel_h x kernel_w contiguous elements
                                       in the order of filter_layout; read only. */
  const void *bias;               /**< [in optional: out_channels] out_channels contiguous values; NULL: zeros. */
  int64_t images;                 /**< >= 0. SG_CONV2D_DESC_INIT sets 1. */
  int64_t channels;               /**< Of X; >= 0, < 2^29, a multiple of groups. */
  int64_t height;                 /**< Of X; >= 0, < 2^29. */
  int64_t width;                  /**< Of X; >= 0, < 2^29. */
  int64_t out_channels;           /**< Of Y; >= 0, < 2^29, a multiple of groups. */
  int64_t groups;                 /**< > 0. SG_CONV2D_DESC_INIT sets 1. */
  sg_windows windows;             /**< SG_CONV2D_DESC_INIT: each pixel. */
  uint64_t workspace;             /**< Limit of the memory for matrices of windows, and on the cpu for copies of images in another
                                       order, in bytes; 0: a quarter of the device's, 256 MiB at most; on the cpu 1 MiB for each
                                       core. */
  sg_image_layout image_layout;   /**< Of X and Y. Default: NCHW. */
  sg_filter_layout filter_layout; /**< Default: OIHW. */
  sg_dtype dtype;                 /**< Of all operands. Default: f32. */
  sg_activation activation;       /**< Default: none. */
  sg_compute compute;             /**< The least accurate arithmetic allowed. Default: exact. */
  uint32_t reserved;              /**< 0. */
} sg_conv2d_desc;

/** Initial value of an sg_conv2d_desc: one image, one group, no bias, no activation. */
#define SG_CONV2D_DESC_INIT                                                                                   \
  {                                                                                                           \
    sizeof(sg_conv2d_desc), SG_IMAGES_INIT, SG_IMAGES_INIT, NULL, NULL, 1, 0, 0, 0, 0, 1, SG_WINDOWS_INIT, 0, \
        SG_IMAGE_NCHW, SG_FILTER_OIHW, SG_DTYPE_F32, SG_ACTIVATION_NONE, SG_COMPUTE_EXACT, 0                  \
  }

/**
 * Descriptor of the gradients of a convolution. dY is the gradient of the loss with respect to conv(X, W) + bias: where the
 * layer has an activation, its derivative has been applied. A result whose data pointer is NULL is not computed; operands that
 * are then not needed are not looked at: W without dX, X without dW. Results overlap no other operand.
 *
 * dX is rounded once, except that where the workspace holds the windows of less than an image, in f16 and bf16 pixels in the
 * windows of several blocks are rounded once for each. dX of filters W and dY is the transposed convolution of dY with W.
 * Since 0.2.
 */
typedef struct sg_conv2d_backward_desc {
  size_t struct_size;             /**< sizeof(sg_conv2d_backward_desc), set by SG_CONV2D_BACKWARD_DESC_INIT. */
  sg_images dy;                   /**< [in: images x out_channels x out_h x out_w] dY, as Y. */
  sg_images x;                    /**< [in for dw: images x channels x height x width] X. */
  const void *w;                  /**< [in for dx: out_channels x channels/groups x kernel_h x kernel_w] The filters. */
  sg_images dx;                   /**< [out optional: images x channels x height x width] Result dX, as X. */
  void *dw;                       /**< [inout optional: out_channels x channels/groups x kernel_h x kernel_w of gradient_dtype] Result dW, of gradient_dtype, stored as W is; NULL: not computed. */
  void *dbias;                    /**< [inout optional: out_channels of gradient_dtype] Result: out_channels contiguous values of gradient_dtype; NULL: not computed. */
  int64_t images;                 /**< As in sg_conv2d_desc, and so are the fields below. */
  int64_t channels;               /**< Of X. */
  int64_t height;                 /**< Of X. */
  int64_t width;                  /**< Of X. */
  int64_t out_channels;           /**< Of dY. */
  int64_t groups;                 /**< > 0. SG_CONV2D_BACKWARD_DESC_INIT sets 1. */
  sg_windows windows;             /**< SG_CONV2D_BACKWARD_DESC_INIT: each pixel. */
  uint64_t workspace;             /**< As in sg_conv2d_desc. Sums of dW need memory of its size in f32 or f64 for each lane, too. */
  sg_image_layout image_layout;   /**< Of X, dX and dY. Default: NCHW. */
  sg_filter_layout filter_layout; /**< Of W and dW. Default: OIHW. */
  sg_dtype dtype;                 /**< Of X, W, dY and dX. Default: f32. */
  sg_dtype gradient_dtype;        /**< Of dW and dbias: dtype, or f32 for f16 and bf16. 0, the default: dtype. */
  sg_compute compute;             /**< The least accurate arithmetic allowed. Default: exact. */
  int32_t accumulate;             /**< 1: the gradients are added to dW and dbias, which are read then; 0: they replace them. */
} sg_conv2d_backward_desc;

/** Initial value of an sg_conv2d_backward_desc: nothing is computed; one image, one group, no accumulation. */
#define SG_CONV2D_BACKWARD_DESC_INIT                                                                               \
  {                                                                                                                \
    sizeof(sg_conv2d_backward_desc), SG_IMAGES_INIT, SG_IMAGES_INIT, NULL, SG_IMAGES_INIT, NULL, NULL, 1, 0, 0, 0, \
        0, 1, SG_WINDOWS_INIT, 0, SG_IMAGE_NCHW, SG_FILTER_OIHW, SG_DTYPE_F32, (sg_dtype)0, SG_COMPUTE_EXACT, 0    \
  }

/**
 * Submits a convolution and returns at once.
 * @param context The context that runs it.
 * @param desc The operands; read during the call only. The caller owns the memory; job.h states its lifetime.
 * @param submit Order, priority, completion queue; of its plan only streams and memory_limit apply. NULL for the defaults.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types),
 * SG_STATUS_OUT_OF_MEMORY (also if the workspace or the device's memory is too small for a few windows, or for an image on the
 * host), SG_STATUS_BUSY (the context's job limit), SG_STATUS_SHUTDOWN: not submitted, nothing is accessed. An empty Y succeeds.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_conv2d_async(sg_context *context, const sg_conv2d_desc *desc, const sg_submit *submit,
                                 sg_job **out_job);

/**
 * Submits a convolution and waits for it: sg_conv2d_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_conv2d(sg_context *context, const sg_conv2d_desc *desc, const sg_submit *submit);

/**
 * Submits the gradients of a convolution as one job and returns at once. If it fails or is cancelled, parts of the results may
 * have been written.
 * @param context,out_job As in sg_conv2d_async.
 * @param desc The operands; read during the call only. The caller owns the memory; job.h states its lifetime.
 * @param submit As in sg_conv2d_async.
 * @return As sg_conv2d_async. Results without elements succeed, and so does a call without results.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_conv2d_backward_async(sg_context *context, const sg_conv2d_backward_desc *desc,
                                          const sg_submit *submit, sg_job **out_job);

/**
 * Submits the gradients of a convolution and waits for them: sg_conv2d_backward_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_conv2d_backward(sg_context *context, const sg_conv2d_backward_desc *desc, const sg_submit *submit);

/**
 * Submits the matrix of windows and returns at once.
 * @param context The context that runs it.
 * @param desc The operands; read during the call only. The caller owns the memory; job.h states its lifetime.
 * @param submit Order, priority, completion queue; NULL for the defaults. Its plan is ignored.
 * @param[out] out_job One reference to the job, to be released by sg_job_release; NULL on failure. May be NULL.
 * @return SG_STATUS_OK: submitted; SG_STATUS_INVALID_ARGUMENT, SG_STATUS_INVALID_HANDLE, SG_STATUS_UNSUPPORTED (types), SG_STATUS_OUT_OF_MEMORY, SG_STATUS_BUSY (the context's job limit),
 * SG_STATUS_SHUTDOWN: not submitted, nothing is accessed.
 * Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_im2col_async(sg_context *context, const sg_im2col_desc *desc, const sg_submit *submit,
                                 sg_job **out_job);

/**
 * Submits the matrix of windows and waits for it: sg_im2col_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_im2col(sg_context *context, const sg_im2col_desc *desc, const sg_submit *submit);

/**
 * Submits the sum of windows and returns at once.
 * @param context,out_job As in sg_im2col_async.
 * @param desc The operands; read during the call only. The caller owns the memory; job.h states its lifetime.
 * @param submit As in sg_im2col_async.
 * @return As sg_im2col_async. Never blocks on work in flight, unless the context has a job limit. Any thread. Since 0.2.
 */
SG_API sg_status sg_col2im_async(sg_context *context, const sg_col2im_desc *desc, const sg_submit *submit,
                                 sg_job **out_job);

/**
 * Submits the sum of windows and waits for it: sg_col2im_async and sg_job_wait in one.
 * @return The job's status, or why it was not submitted. Blocks. Any thread. Since 0.2.
 */
SG_API sg_status sg_col2im(sg_context *context, const sg_col2im_desc *desc, const sg_submit *submit);

SG_END_DECLS

#endif /* STREAMGEMM_CONV_H */
