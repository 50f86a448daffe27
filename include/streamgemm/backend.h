/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file backend.h
 * @brief The interface between the library and a backend: a table of functions over one kind of device.
 *
 * Not part of the umbrella header: applications do not need it. Backends, built in or in a plugin, include this file and
 * nothing else of StreamGEMM. It may change with each version of the library, whose ABI it is no part of: a backend is
 * compiled for one SG_BACKEND_ABI_VERSION, and says by defining SG_BACKEND_UNSTABLE_API that it follows.
 *
 * The core validates; a backend may assume valid input: pointers of the right memory, dimensions > 0, leading dimensions
 * in range, no C that overlaps A or B. All matrices are column major. Enqueueing functions return at once; commands of
 * one stream run in order; streams run concurrently. A function returns SG_STATUS_OK, or a failure; `last_message` then
 * returns its text.
 *
 * Commands are tagged structs, passed by pointer: each begins with an sg_backend_command, with its kind and its size in
 * the core. A backend reads no field beyond `struct_size`, and its `supports` returns 0 for an unknown kind; so kinds and
 * fields can be added.
 *
 * Completion: every enqueueing function takes an `sg_backend_done`. If its `fn` is not NULL and the call returned
 * SG_STATUS_OK, `fn` is called exactly once, when the command and everything before it in the stream has completed,
 * successfully or not; possibly before the enqueueing call returns; always on a thread of the backend, or in `poll` or
 * `run_waiting`, never in the enqueueing call itself. It may enqueue further commands; it never blocks. If the call
 * failed, `fn` is not called.
 *
 * Threads: any function may be called from any thread, except that one stream is never used by two threads at once.
 */
#ifndef STREAMGEMM_BACKEND_H
#define STREAMGEMM_BACKEND_H

#ifndef SG_BACKEND_UNSTABLE_API
#error "backend.h is no stable interface: it may change with each version; a backend that follows it defines SG_BACKEND_UNSTABLE_API"
#endif

#include <streamgemm/types.h>

SG_BEGIN_DECLS

/** Version of this table. A backend of another version is refused. */
#define SG_BACKEND_ABI_VERSION 3
/** Size of a backend's message buffer, in bytes, with the NUL. */
#define SG_BACKEND_MESSAGE_SIZE 512

/** An open device; the backend's own type. */
typedef struct sg_backend_device sg_backend_device;
/** A stream of a device; the backend's own type. */
typedef struct sg_backend_stream sg_backend_stream;
/** An event of a device; the backend's own type. */
typedef struct sg_backend_event sg_backend_event;
/** Commands that a device runs as one; the backend's own type. */
typedef struct sg_backend_graph sg_backend_graph;

/** Result of a completed command. */
typedef struct sg_backend_result {
  sg_status status;    /**< SG_STATUS_OK, or why it failed. */
  const char *message; /**< Text of a failure, valid during the call of `fn`; NULL: none. With SG_STATUS_OK: why GEMMs of
                            the batch failed alone. */
  int64_t start_ns;    /**< Start on the device's clock, in ns; 0 if the backend does not time commands. Of a command behind a
                            wait for another stream it may be too early: the end of the command before it. */
  int64_t end_ns;      /**< End on the device's clock, in ns; 0 if the backend does not time commands. */
} sg_backend_result;

/** The callback for a command's completion. */
typedef struct sg_backend_done {
  void (*fn)(void *user, const sg_backend_result *result); /**< NULL: no callback. */
  void *user;                                              /**< Passed to `fn`. */
} sg_backend_done;

/** The kinds of commands. */
typedef enum sg_backend_command_kind SG_ENUM_INT {
  SG_BACKEND_MARKER = 1, /**< sg_backend_command itself: does nothing; completes when everything before it has. */
  SG_BACKEND_COPY = 2,   /**< sg_backend_copy. */
  SG_BACKEND_GEMM = 3,   /**< sg_backend_gemm. */
  SG_BACKEND_REDUCE = 4, /**< sg_backend_reduce. */
  SG_BACKEND_AXPBY = 5,  /**< sg_backend_axpby. */
  SG_BACKEND_ELEMENTWISE = 6, /**< sg_backend_elementwise. */
  SG_BACKEND_SOFTMAX = 7,     /**< sg_backend_softmax. */
  SG_BACKEND_NORM = 8,        /**< sg_backend_norm. */
  SG_BACKEND_DEQUANTIZE = 9,  /**< sg_backend_dequantize. */
  SG_BACKEND_ROTARY = 10,     /**< sg_backend_rotary. */
  SG_BACKEND_CONVERT = 11,    /**< sg_backend_convert. */
  SG_BACKEND_GATHER = 12,     /**< sg_backend_gather. */
  SG_BACKEND_IM2COL = 13,     /**< sg_backend_im2col. */
  SG_BACKEND_COL2IM = 14,     /**< sg_backend_col2im. */
  SG_BACKEND_CONV = 15,       /**< sg_backend_conv. */
  SG_BACKEND_ATTENTION = 16,  /**< sg_backend_attention. */
  SG_BACKEND_CELL = 17,       /**< sg_backend_cell. */
  SG_BACKEND_CELL_BACKWARD = 18,   /**< sg_backend_cell_backward. */
  SG_BACKEND_SOFTMAX_BACKWARD = 19, /**< sg_backend_softmax_backward. */
  SG_BACKEND_CUSTOM = 20,           /**< sg_backend_custom. */
  SG_BACKEND_CLAMP = 21,            /**< sg_backend_clamp. */
  SG_BACKEND_ROW_DOT = 22,          /**< sg_backend_row_dot. */
  SG_BACKEND_ROW_REDUCE = 23,       /**< sg_backend_row_reduce. */
  SG_BACKEND_CROSS_ENTROPY = 24,    /**< sg_backend_cross_entropy. */
  SG_BACKEND_SCATTER_ADD = 25,      /**< sg_backend_scatter_add. */
  SG_BACKEND_POOL = 26,             /**< sg_backend_pool. */
  SG_BACKEND_NORM_BACKWARD = 27,    /**< sg_backend_norm_backward. */
  SG_BACKEND_OPTIMIZER = 28,         /**< sg_backend_optimizer. */
  SG_BACKEND_SCORE_MASK = 29,        /**< sg_backend_score_mask. */
  SG_BACKEND_ATTENTION_BACKWARD = 30, /**< sg_backend_attention_backward. */
  SG_BACKEND_TRIANGULAR = 31,         /**< sg_backend_triangular. */
  SG_BACKEND_SYMMETRIC = 32,          /**< sg_backend_symmetric. */
  SG_BACKEND_FILL = 33                /**< sg_backend_fill. */
} sg_backend_command_kind;

/** The commands but the marker, for the tables of a backend: X(NAME, KIND, TITLE) for the struct sg_backend_NAME, whose kind is
 * SG_BACKEND_KIND. TITLE names it in messages. */
#define SG_BACKEND_COMMANDS(X)                                          \
  X(copy, COPY, "a copy")                                               \
  X(gemm, GEMM, "a GEMM")                                               \
  X(reduce, REDUCE, "a reduction")                                      \
  X(axpby, AXPBY, "a scale-and-add")                                    \
  X(elementwise, ELEMENTWISE, "an elementwise function")                \
  X(softmax, SOFTMAX, "a softmax")                                      \
  X(norm, NORM, "a norm")                                               \
  X(dequantize, DEQUANTIZE, "a dequantization")                         \
  X(rotary, ROTARY, "a rotary embedding")                               \
  X(convert, CONVERT, "a conversion")                                   \
  X(gather, GATHER, "a gather")                                         \
  X(im2col, IM2COL, "an im2col")                                        \
  X(col2im, COL2IM, "a col2im")                                         \
  X(conv, CONV, "a convolution")                                        \
  X(attention, ATTENTION, "an attention")                               \
  X(cell, CELL, "a recurrent cell")                                     \
  X(cell_backward, CELL_BACKWARD, "the gradients of a recurrent cell")  \
  X(softmax_backward, SOFTMAX_BACKWARD, "a softmax's gradient")         \
  X(custom, CUSTOM, "a custom operation")                               \
  X(clamp, CLAMP, "a clamp")                                            \
  X(row_dot, ROW_DOT, "dot products of rows")                           \
  X(row_reduce, ROW_REDUCE, "reductions of rows")                       \
  X(cross_entropy, CROSS_ENTROPY, "a cross entropy")                    \
  X(scatter_add, SCATTER_ADD, "sums into rows of a table")              \
  X(pool, POOL, "a pooling")                                            \
  X(norm_backward, NORM_BACKWARD, "a norm's gradient")                  \
  X(optimizer, OPTIMIZER, "a step of an optimizer")                     \
  X(score_mask, SCORE_MASK, "a mask of scores")                         \
  X(attention_backward, ATTENTION_BACKWARD, "an attention's gradients") \
  X(triangular, TRIANGULAR, "a triangular solve or product")            \
  X(symmetric, SYMMETRIC, "a symmetric product or update")              \
  X(fill, FILL, "a fill")

/** The beginning of every command. */
typedef struct sg_backend_command {
  uint32_t struct_size;         /**< Size of the command's struct in the core. */
  sg_backend_command_kind kind; /**< The kind of struct that it begins. */
} sg_backend_command;

/** C_i = activation(alpha * op(A_i) * op(B_i) + beta * C_i + bias_i) for i < batch; column major; beta == 0 does not read
 * C; k > 0. The bias and the activation are applied in the accumulator, before the one rounding to C's type. */
typedef struct sg_backend_gemm {
  sg_backend_command header; /**< SG_BACKEND_GEMM. */
  int64_t m;                /**< Rows of op(A) and C. */
  int64_t n;                /**< Columns of op(B) and C. */
  int64_t k;                /**< Columns of op(A), rows of op(B). */
  int64_t batch;            /**< >= 1. */
  sg_transpose op_a;               /**< SG_TRANSPOSE_C only with complex types. */
  sg_transpose op_b;               /**< The same for B. */
  sg_dtype in_type;         /**< Type of A and B. */
  sg_dtype out_type;        /**< Type of C: in_type; f32 for f16 and bf16 too; i32 for i8; f32, f16, bf16 for f8. */
  sg_compute compute;       /**< The least accurate arithmetic allowed. */
  sg_scalar alpha;          /**< A host value; not 0. */
  sg_scalar beta;           /**< A host value. */
  const void *a;            /**< A_0 when a_array is NULL. */
  const void *b;            /**< B_0 when b_array is NULL. */
  void *c;                  /**< C_0 when c_array is NULL. */
  const void *const *a_array; /**< Host array of batch pointers, or NULL. Read during the call only. */
  const void *const *b_array; /**< The same for B. */
  void *const *c_array;       /**< The same for C. */
  int64_t lda;              /**< Leading dimension of A in elements. */
  int64_t ldb;              /**< The same of B. */
  int64_t ldc;              /**< The same of C. */
  int64_t stride_a;         /**< Between items of A in elements; 0 shares A. Used without arrays. */
  int64_t stride_b;         /**< The same for B. */
  int64_t stride_c;         /**< Between items of C in elements. Used without arrays. */
  int32_t compute_units;    /**< Limit of multiprocessors, if the device supports one; 0: all. A hint. */
  sg_activation activation; /**< NONE; RELU for real and i32 results; GELU for real ones. See types.h. */
  const void *bias;         /**< Values of C's type, contiguous; NULL: none. */
  int64_t stride_bias;      /**< Between items in values, with arrays too; 0 shares it. */
  int32_t bias_per_row;     /**< 1: m values, one for each row of C; 0: n, one for each column. */
} sg_backend_gemm;

/** C = activation(beta * C + sum over i < parts of P_i + bias), added in C's accumulator in the order of i, or many
 * parts range by range in an order that depends on the sizes only; column major. */
typedef struct sg_backend_reduce {
  sg_backend_command header; /**< SG_BACKEND_REDUCE. */
  int64_t m;             /**< Rows of C and of each part. */
  int64_t n;             /**< Their columns. */
  sg_dtype part_type;    /**< Type of the parts: f64, f32, c64, c128 or i32; of an f32 C f16 and bf16 too. */
  sg_dtype out_type;     /**< Type of C. */
  sg_scalar beta;        /**< 0 does not read C; with no parts, 1 only with a bias or an activation. */
  const void *parts;     /**< P_0; NULL when parts_count is 0 (then C is scaled only). */
  int64_t parts_count;   /**< >= 0. */
  int64_t part_ld;       /**< Leading dimension of a part, in elements. */
  int64_t part_stride;   /**< From one part to the next, in elements. */
  void *c;               /**< The result. */
  int64_t ldc;           /**< In elements. */
  const void *bias;      /**< Values of C's type, contiguous; NULL: none. */
  int32_t bias_per_row;  /**< As in sg_backend_gemm. */
  sg_activation activation; /**< As in sg_backend_gemm. */
} sg_backend_reduce;

/** C = activation(alpha * A + beta * C), element by element, in C's accumulator; column major. */
typedef struct sg_backend_axpby {
  sg_backend_command header; /**< SG_BACKEND_AXPBY. */
  int64_t m;                 /**< Rows of A and C. */
  int64_t n;                 /**< Their columns. */
  sg_dtype type;             /**< Of A and C: f64, f32, f16, bf16, c64, c128 or i32. */
  sg_activation activation;  /**< As in sg_backend_gemm. */
  sg_scalar alpha;           /**< A host value; 0 without A. */
  sg_scalar beta;            /**< A host value; 0 does not read C. */
  const void *a;             /**< NULL: C is scaled only. */
  int64_t lda;               /**< In elements. */
  void *c;                   /**< The result; does not overlap A. */
  int64_t ldc;               /**< In elements. */
} sg_backend_axpby;

/** C = function(A) or function(A, B), element by element; column major. The functions of layers.h: f64, f32, f16 or bf16,
 * computed in f64 or f32 and rounded once. C may be A or B itself. */
typedef struct sg_backend_elementwise {
  sg_backend_command header; /**< SG_BACKEND_ELEMENTWISE. */
  int64_t m;                 /**< Rows of A, B and C. */
  int64_t n;                 /**< Their columns. */
  sg_dtype type;             /**< Of A, B and C. */
  sg_function function;      /**< See types.h. */
  const void *a;             /**< Read. */
  int64_t lda;               /**< In elements. */
  const void *b;             /**< NULL with functions of one operand. */
  int64_t ldb;               /**< In elements. */
  void *c;                   /**< The result. */
  int64_t ldc;               /**< In elements. */
} sg_backend_elementwise;

/** The softmax of each row, as sg_softmax_desc describes it. Element (i, j) of X is at i * x_row + j * x_col, in elements; one
 * of the two strides is 1. Y may be X itself. */
typedef struct sg_backend_softmax {
  sg_backend_command header; /**< SG_BACKEND_SOFTMAX. */
  int64_t rows;              /**< Rows of X and Y. */
  int64_t cols;              /**< Their columns. */
  sg_dtype type;             /**< Of Y, and of X if x_type is 0: f64, f32, f16 or bf16. */
  sg_mask mask;              /**< NONE or CAUSAL. */
  int64_t mask_offset;       /**< Row number r has the columns j <= r + mask_offset. */
  const void *x;             /**< Read. */
  int64_t x_row;             /**< From row to row of X. */
  int64_t x_col;             /**< From column to column of X. */
  void *y;                   /**< The result. */
  int64_t y_row;             /**< From row to row of Y. */
  int64_t y_col;             /**< From column to column of Y; 1 if and only if x_col is, or X has one row or column. */
  int64_t mask_row;          /**< Row i has the number r = i + mask_row, */
  int64_t mask_rows;         /**< modulo mask_rows, the rows of each matrix of a stack, unless that is 0. */
  sg_dtype x_type;           /**< Of X: 0, or f32 with a Y of f16 or bf16; then x_col and y_col are 1. */
  float *sums;               /**< NULL; or, if x_type is not 0, one for each row: then Y has the exponentials of X less the row's
                              * maximum, not divided by their sum, and sums[i] is the sum of row i of Y as rounded. */
} sg_backend_softmax;

/** The normalization of each row, as sg_norm_desc describes it; strides as in sg_backend_softmax. Y may be X itself. */
typedef struct sg_backend_norm {
  sg_backend_command header; /**< SG_BACKEND_NORM. */
  int64_t rows;              /**< Rows of X and Y. */
  int64_t cols;              /**< Their columns. */
  sg_dtype type;             /**< Of all operands: f64, f32, f16 or bf16. */
  sg_norm_kind kind;         /**< LAYER or RMS. */
  double epsilon;            /**< >= 0. */
  const void *x;             /**< Read. */
  int64_t x_row;             /**< As in sg_backend_softmax. */
  int64_t x_col;             /**< As in sg_backend_softmax. */
  void *y;                   /**< The result. */
  int64_t y_row;             /**< As in sg_backend_softmax. */
  int64_t y_col;             /**< As in sg_backend_softmax. */
  const void *gamma;         /**< One for each column, contiguous; NULL: ones. */
  const void *beta;          /**< Likewise; NULL: zeros. NULL with RMS. */
} sg_backend_norm;

/** A dequantization, as sg_dequantize_desc describes it; row major. Y does not overlap the other operands. */
typedef struct sg_backend_dequantize {
  sg_backend_command header;    /**< SG_BACKEND_DEQUANTIZE. */
  int64_t rows;                 /**< Rows of all operands. */
  int64_t cols;                 /**< Columns of Y; a multiple of block_size. */
  int64_t block_size;           /**< Values with one scale; even. */
  sg_quantization quantization; /**< How the values of X are stored. */
  sg_dtype scale_type;          /**< f32, f16 or bf16. */
  sg_dtype type;                /**< Of Y: f32, f16 or bf16. */
  uint32_t reserved;            /**< 0. */
  const void *x;                /**< Read. */
  int64_t x_row;                /**< From row to row of X, in bytes. */
  const void *scales;           /**< Read. */
  int64_t scales_row;           /**< From row to row, in elements. */
  const int8_t *zero_points;    /**< NULL: all are 0. */
  int64_t zero_points_row;      /**< From row to row, in bytes. */
  void *y;                      /**< The result. */
  int64_t y_row;                /**< From row to row of Y, in elements. */
} sg_backend_dequantize;

/** A rotary embedding, as sg_rotary_desc describes it; row major. Y may be X itself. Row i has the position first_position +
 * (first_row + i) modulo sequence_length. */
typedef struct sg_backend_rotary {
  sg_backend_command header; /**< SG_BACKEND_ROTARY. */
  int64_t rows;              /**< Rows of X and Y. */
  int64_t cols;              /**< Their columns; a multiple of head_size. */
  int64_t head_size;         /**< Columns of a head. */
  int64_t rotated_size;      /**< The first elements of a head, which are rotated; even, > 0, at most head_size. */
  int64_t first_position;    /**< >= 0. */
  int64_t first_row;         /**< >= 0. */
  int64_t sequence_length;   /**< > 0. */
  double theta;              /**< > 0. */
  sg_dtype type;             /**< Of X and Y: f64, f32, f16 or bf16. */
  sg_dtype table_type;       /**< Of the tables: the same, or f32 for f16 and bf16. */
  sg_rotary_pairs pairs;     /**< HALVES or INTERLEAVED. */
  int32_t inverse;           /**< 1: by the negative angle. */
  const void *x;             /**< Read. */
  int64_t x_row;             /**< From row to row of X, in elements. */
  void *y;                   /**< The result. */
  int64_t y_row;             /**< From row to row of Y. */
  const void *cos;           /**< A row for each position; NULL, and so is sin: the angles follow from theta. */
  int64_t cos_row;           /**< From row to row of cos. */
  const void *sin;           /**< Likewise. */
  int64_t sin_row;           /**< From row to row of sin. */
} sg_backend_rotary;

/** C_i = op(A_i) for i < batch, cast to C's type as sg_convert_desc describes it; column major. C may be A itself with op N,
 * types of one size, equal leading dimensions and equal strides. */
typedef struct sg_backend_convert {
  sg_backend_command header; /**< SG_BACKEND_CONVERT. */
  int64_t m;                 /**< Rows of op(A) and C. */
  int64_t n;                 /**< Their columns. */
  sg_transpose op;                  /**< N or T. */
  sg_dtype in_type;          /**< Of A: f64, f32, f16 or bf16. */
  sg_dtype out_type;         /**< Of C: likewise. */
  uint32_t reserved;         /**< 0. */
  const void *a;             /**< Read. */
  int64_t lda;               /**< In elements. */
  void *c;                   /**< The result. */
  int64_t ldc;               /**< In elements. */
  int64_t batch;             /**< >= 1. */
  int64_t stride_a;          /**< Between items of A in elements. */
  int64_t stride_c;          /**< Between items of C in elements. */
  const float *divisors;     /**< NULL; or, if A is f32 and op is N, n for each item, contiguous: column j is divided by its
                              * divisor, unless that is 0, before the one rounding. */
} sg_backend_convert;

/** Row i of Y = row indices[i] of the table, as sg_gather_desc describes it; row major, of elements of any type. No byte outside
 * the table is read. Y overlaps no other operand. */
typedef struct sg_backend_gather {
  sg_backend_command header; /**< SG_BACKEND_GATHER. */
  int64_t rows;              /**< Of Y: the number of indices. */
  int64_t row_bytes;         /**< Bytes of a row. */
  int64_t table_rows;        /**< > 0. */
  int64_t table_row;         /**< From row to row of the table, in bytes. */
  int64_t y_row;             /**< From row to row of Y, in bytes. */
  uint64_t fill;             /**< Eight bytes in the order of memory, repeated in the row of an index that is out of range. */
  int32_t component_bytes;   /**< Of an element, or of one of the two parts of a complex one: 1, 2, 4 or 8. Rows are aligned to it. */
  int32_t index_bytes;       /**< Of an index: 4 or 8; signed. */
  int32_t from_end;          /**< 1: indices below 0 have table_rows added. */
  uint32_t reserved;         /**< 0. */
  const void *table;         /**< Read. */
  const void *indices;       /**< Contiguous; read. */
  void *y;                   /**< The result. */
} sg_backend_gather;

/** Images and the matrix of their windows, as conv.h describes them; strides in elements. Window (i, j) of image n is position
 * (n * out_h + i) * out_w + j; the matrix has `positions` positions from first_position. The channels are in `groups` groups of
 * equal size, of s channels. Column (g * s * taps) + c * taps + t is tap t = kh * kernel_w + kw of channel g * s + c; with
 * channels_inner, column (g * s * taps) + t * s + c. */
typedef struct sg_backend_windows {
  int64_t images;         /**< > 0. */
  int64_t image;          /**< From image to image. */
  int64_t channel;        /**< From channel to channel. */
  int64_t row;            /**< From row to row of an image. */
  int64_t pixel;          /**< From pixel to pixel of a row. */
  int64_t first_position; /**< Number of the matrix's first position. */
  int64_t positions;      /**< >= 0; 0 in a col2im without windows only. */
  int64_t position;       /**< From position to position of the matrix. */
  int64_t column;         /**< From column to column of the matrix; this or `position` is 1. */
  int32_t channels;       /**< > 0. */
  int32_t groups;         /**< A divisor of `channels`. */
  int32_t height;         /**< > 0. */
  int32_t width;          /**< > 0. */
  int32_t kernel_h;       /**< > 0. */
  int32_t kernel_w;       /**< > 0. */
  int32_t stride_h;       /**< > 0. */
  int32_t stride_w;       /**< > 0. */
  int32_t dilation_h;     /**< > 0. */
  int32_t dilation_w;     /**< > 0. */
  int32_t pad_top;        /**< >= 0. */
  int32_t pad_left;       /**< >= 0. */
  int32_t out_h;          /**< Windows of an image from top to bottom; > 0. */
  int32_t out_w;          /**< From left to right; > 0. */
  int32_t channels_inner; /**< 1: the columns of a tap are adjacent; 0: those of a channel. */
  uint32_t reserved;      /**< 0. */
} sg_backend_windows;

/** The matrix of windows; pixels outside an image are 0. Elements of any type. All positions are of the images. */
typedef struct sg_backend_im2col {
  sg_backend_command header; /**< SG_BACKEND_IM2COL. */
  sg_backend_windows of;     /**< Images and matrix. */
  const void *x;             /**< The images; read. */
  void *matrix;              /**< The result; does not overlap the images. */
  int32_t element_bytes;     /**< 1, 2, 4, 8 or 16; those of 8 and 16 may be aligned to half of that. */
  uint32_t reserved;         /**< 0. */
} sg_backend_im2col;

/** Each element of the images = the sum of the matrix's elements that sg_backend_im2col takes from it (+ the element itself), for
 * the positions that the matrix has, in f64 for f64 and in f32 otherwise, in the order of the taps, and rounded once. Positions
 * may be of other images, too, before the first one (numbers below 0) or after the last one. f64, f32, f16 or bf16; a matrix of
 * f32 goes with images of f16 and bf16, too. */
typedef struct sg_backend_col2im {
  sg_backend_command header; /**< SG_BACKEND_COL2IM. */
  sg_backend_windows of;     /**< Images and matrix. */
  const void *matrix;        /**< Read; NULL without positions. */
  void *x;                   /**< The result; does not overlap the matrix. */
  sg_dtype matrix_type;      /**< Of the matrix. */
  sg_dtype type;             /**< Of the images. */
  int32_t accumulate;        /**< 1: the images are read and added. */
  uint32_t reserved;         /**< 0. */
} sg_backend_col2im;

/** Which operand of a convolution is computed from the other two. */
typedef enum sg_backend_conv_gradient SG_ENUM_INT {
  SG_BACKEND_CONV_OF_Y = 0, /**< Y = activation(conv(X, W) + bias). */
  SG_BACKEND_CONV_OF_X = 1, /**< The gradient of X, in x, from that of Y, in y, and W. */
  SG_BACKEND_CONV_OF_W = 2  /**< The gradient of W, in w, from that of Y, in y, and X. */
} sg_backend_conv_gradient;

/** Y = activation(conv(X, W) + bias) of whole images without gaps, as sg_conv2d_desc describes it; Y in the order of X. Or one of
 * its gradients, without bias and activation. A device without it has sg_backend_im2col and GEMMs. */
typedef struct sg_backend_conv {
  sg_backend_command header; /**< SG_BACKEND_CONV. */
  sg_backend_windows of;     /**< Of X, and channels_inner of W; the fields of positions and columns are 0. */
  int64_t y_image;           /**< From image to image of Y, in elements. */
  void *x;                   /**< The images; read, or the result. */
  void *w;                   /**< The filters, contiguous; read, or the result. */
  const void *bias;          /**< A value for each output channel; NULL: zeros. Read. */
  void *y;                   /**< Read, or the result, which overlaps no other operand. */
  int32_t out_channels;      /**< A multiple of of.groups; > 0. */
  sg_dtype type;             /**< Of all operands. */
  sg_activation activation;  /**< As in sg_backend_gemm. */
  sg_backend_conv_gradient gradient; /**< Which operand is the result. */
  sg_dtype w_type;           /**< 0; or of W, where it is the result: f32 for f16 and bf16. */
  uint32_t reserved;         /**< 0. */
  void *scratch;             /**< Memory for copies of the operands in an order of the device's own, aligned to 256; NULL: none. */
  int64_t scratch_bytes;     /**< Its size. */
} sg_backend_conv;

/** An operand of an attention; strides in elements, >= 0. */
typedef struct sg_backend_heads {
  void *data;    /**< The first element. */
  int64_t batch; /**< From one batch to the next. */
  int64_t head;  /**< From one head to the next. */
  int64_t token; /**< From one token to the next, whose elements are contiguous. */
} sg_backend_heads;

/** O = softmax(scale * Q * K^T + mask) * V for each head of each batch, as sg_attention_desc describes it, by one kernel
 * without memory for scores. Products and the softmax in f32; each weight, before it is divided by their sum, and O are rounded once.
 * Optional: the core uses GEMMs and softmaxes instead. */
typedef struct sg_backend_attention {
  sg_backend_command header; /**< SG_BACKEND_ATTENTION. */
  int64_t batch;             /**< > 0. */
  int64_t heads;             /**< Of Q and O; a multiple of kv_heads. */
  int64_t kv_heads;          /**< Of K and V; > 0. */
  int64_t queries;           /**< Tokens of Q and O; > 0. */
  int64_t keys;              /**< Tokens of K and V; >= 0. */
  int64_t width;             /**< Elements of a token of Q and K; > 0. */
  int64_t value_width;       /**< Elements of a token of V and O; > 0. */
  int64_t mask_offset;       /**< With a causal mask query i has the keys j <= i + mask_offset. */
  sg_mask mask;              /**< Whether it is causal. */
  sg_dtype type;             /**< f16 or bf16. */
  double scale;              /**< Finite. */
  sg_backend_heads q;        /**< Read. */
  sg_backend_heads k;        /**< Read. */
  sg_backend_heads v;        /**< Read. */
  sg_backend_heads o;        /**< The result. A query without keys gets zeros. */
} sg_backend_attention;

/** The masks of an attention, as sg_attention_desc describes them, on a block S of its scores, in place: a bias is added, and the
 * scores of hidden keys become minus infinity. Row major. Row r of S is row i = first_row + r % item_rows of item
 * n = first_item + r / item_rows: a score of batch n / kv_heads, of head (n % kv_heads) * (heads / kv_heads) + first_head +
 * i / queries, and of query i % queries. Column c is key first_key + c. Optional: attentions with masks then are refused. */
typedef struct sg_backend_score_mask {
  sg_backend_command header; /**< SG_BACKEND_SCORE_MASK. */
  int64_t rows;              /**< Rows of S; > 0. */
  int64_t cols;              /**< Columns of S; > 0. */
  sg_dtype type;             /**< Of S: f64 or f32. */
  sg_dtype bias_type;        /**< f64 if S is, otherwise f32, f16 or bf16. */
  void *scores;              /**< S. */
  int64_t scores_row;        /**< From row to row of S, in elements. */
  int64_t item_rows;         /**< Rows of S of each item; > 0. */
  int64_t first_item;        /**< Of row 0. */
  int64_t first_row;         /**< Of row 0 of each item. */
  int64_t first_head;        /**< Of row 0, among the heads with the same keys. */
  int64_t first_key;         /**< Of column 0. */
  int64_t heads;             /**< Of the attention; a multiple of kv_heads. */
  int64_t kv_heads;          /**< > 0. */
  int64_t queries;           /**< Of the attention; > 0. */
  int64_t keys;              /**< Of the attention; > 0. */
  sg_backend_heads bias;     /**< Read; a token is a query, its elements are keys. data NULL: none. */
  sg_backend_heads visible;  /**< Read; the same, of bytes. data NULL: none. */
  const int32_t *query_lengths; /**< One for each batch; NULL: all have `queries`. */
  const int32_t *key_lengths;   /**< One for each batch; NULL: all have `keys`. */
  int64_t mask_offset;       /**< Of a causal mask. */
  int64_t window;            /**< Of a causal mask; 0: none. */
  sg_mask mask;              /**< Any. */
  uint32_t reserved;         /**< 0. */
} sg_backend_score_mask;

/** The gradients of an attention from dO, as sg_attention_backward_desc describes them. Products and sums in f32; weights, their
 * gradients and O, which the device computes again, are rounded once each. A result whose data is NULL is not wanted.
 * Optional: the core uses GEMMs and softmaxes instead. */
typedef struct sg_backend_attention_backward {
  sg_backend_command header; /**< SG_BACKEND_ATTENTION_BACKWARD. */
  int64_t batch;             /**< This and the next nine as in sg_backend_attention. */
  int64_t heads;             /**< Of Q and dO. */
  int64_t kv_heads;          /**< Of K and V. */
  int64_t queries;           /**< Tokens of Q and dO. */
  int64_t keys;              /**< Tokens of K and V. */
  int64_t width;             /**< Elements of a token of Q and K. */
  int64_t value_width;       /**< Elements of a token of V and dO. */
  int64_t mask_offset;       /**< Of a causal mask. */
  sg_mask mask;              /**< Whether it is causal. */
  sg_dtype type;             /**< f16 or bf16. */
  double scale;              /**< Finite. */
  sg_backend_heads q;        /**< Read. */
  sg_backend_heads k;        /**< Read. */
  sg_backend_heads v;        /**< Read. */
  sg_backend_heads dout;      /**< Read. */
  sg_backend_heads dq;       /**< A result, of Q's form. */
  sg_backend_heads dk;       /**< A result, of K's form. */
  sg_backend_heads dv;       /**< A result, of V's form. */
  void *scratch;             /**< Aligned to 256. */
  int64_t scratch_bytes;     /**< For each query of each head 8 + 4 * width + 2 * value_width; for missing results their elements; and
                              * 8 for each batch; all rounded up to 256. */
} sg_backend_attention_backward;

/** What sg_backend_cell computes. */
typedef enum sg_backend_cell_step SG_ENUM_INT {
  SG_BACKEND_CELL_WHOLE = 0, /**< The cell. */
  SG_BACKEND_CELL_RESET = 1  /**< Of a GRU only sigmoid(r) * h, into Y; the row is not written, and there is no next state. */
} sg_backend_cell_step;

/** One step of a recurrent cell, for each sequence of a batch; recurrent.h has the formulas. All matrices are column
 * major with a column for each sequence. A column of `row` has five blocks of `hidden` values: four of gates, then the
 * state before the step, which is c of an LSTM and h of a GRU. gates[]: the block of each gate: i, f, g, o; or of a
 * GRU: n without the state's part, r, z, and the state's part of n. All of them are sums, of which the activation is
 * still to be taken. */
typedef struct sg_backend_cell {
  sg_backend_command header; /**< SG_BACKEND_CELL. */
  int64_t hidden;            /**< Rows of Y and of the next state. */
  int64_t batch;             /**< Columns of all matrices. */
  sg_cell cell;              /**< The kind of cell. */
  sg_backend_cell_step step; /**< Default: the cell. */
  sg_dtype type;             /**< Of Y: f64, f32, f16 or bf16. `row` and `next` have f64 for f64, otherwise f32. */
  int32_t keeps;             /**< 1: activated gates replace the sums in `row`, except for the state's part of n. */
  int32_t gates[4];          /**< See above. */
  void *row;                 /**< Read; with `keeps` written too. */
  int64_t row_ld;            /**< In elements. */
  void *next;                /**< The state after the step; NULL: not stored. May be the state in `row`. */
  int64_t next_ld;           /**< In elements. */
  void *y;                   /**< The result h, rounded once. */
  int64_t y_ld;              /**< In elements. */
} sg_backend_cell;

/** The gradients of one step of a cell, from a row with activated gates. */
typedef struct sg_backend_cell_backward {
  sg_backend_command header; /**< SG_BACKEND_CELL_BACKWARD. */
  int64_t hidden;            /**< As in sg_backend_cell. */
  int64_t batch;             /**< Columns of all matrices. */
  sg_cell cell;              /**< LSTM or GRU. */
  sg_dtype type;             /**< Of dgates; the others have f64 for f64, otherwise f32. */
  int32_t gates[4];          /**< As in sg_backend_cell. */
  const void *row;           /**< As sg_backend_cell leaves it with `keeps`. Read. */
  int64_t row_ld;            /**< In elements. */
  const void *dh;            /**< The gradient of h. Read. */
  int64_t dh_ld;             /**< In elements. */
  void *dstate;              /**< LSTM: the gradient of c, replaced by that of the state before the step. GRU: z * dh is added
                                  to it; NULL: it is not needed. */
  int64_t dstate_ld;         /**< In elements. */
  void *dgates;              /**< The result: gradients of the sums, in four blocks like those of `row`. */
  int64_t dgates_ld;         /**< In elements. */
} sg_backend_cell_backward;

/** The gradient of a softmax of each row: dX = Y * (dY - the sum of the row of Y * dY), element by element. Rows are contiguous;
 * each may begin anywhere. dX may be Y itself, or dY of the same type. */
typedef struct sg_backend_softmax_backward {
  sg_backend_command header; /**< SG_BACKEND_SOFTMAX_BACKWARD. */
  int64_t rows;              /**< Rows of all operands. */
  int64_t cols;              /**< Their columns. */
  sg_dtype type;             /**< Of Y and dX: f64, f32, f16 or bf16. */
  sg_dtype dy_type;          /**< Of dY: the same, or f32 for f16 and bf16. */
  const void *y;             /**< Read. */
  int64_t y_row;             /**< From row to row of Y, in elements. */
  const void *dy;            /**< Read. */
  int64_t dy_row;            /**< From row to row of dY. */
  void *dx;                  /**< The result. */
  int64_t dx_row;            /**< From row to row of dX. */
} sg_backend_softmax_backward;

/** A function of the application's. Never a node of a graph. */
typedef struct sg_backend_custom {
  sg_backend_command header; /**< SG_BACKEND_CUSTOM. */
  /** Enqueues the work on a native stream, whose device is current; or does it, if that is NULL. `operands`: the addresses at
   *  which it accesses the memory. On failure a reason, possibly an empty one, is written to `message`
   *  (SG_BACKEND_MESSAGE_SIZE bytes). */
  sg_status (*run)(const void *what, void *native_stream, void *const *operands, int32_t operand_count, char *message);
  const void *what;      /**< Passed to `run`; valid until the command has completed. */
  void *operands[4];     /**< The addresses of the operands: of the device's memory, or pinned. */
  uint64_t bytes[4];     /**< Of each. */
  int32_t operand_count; /**< From 1 to 4. */
  int32_t compute_units; /**< Multiprocessors that it occupies; 0: all; -1: none. */
  double seconds;        /**< Expected time; 0: unknown. */
} sg_backend_custom;

/** Y = min(max(X, low), high), or with dY its gradient: dY where low <= X <= high, else 0; column major. Types and arithmetic are
 * those of layers.h; the limits are rounded to the arithmetic's type. Y may be X or dY itself. */
typedef struct sg_backend_clamp {
  sg_backend_command header; /**< SG_BACKEND_CLAMP. */
  int64_t m;                 /**< Rows of X, dY and Y. */
  int64_t n;                 /**< Their columns. */
  sg_dtype type;             /**< Of X, dY and Y. */
  double low;                /**< Not NaN. */
  double high;               /**< Not NaN. */
  const void *x;             /**< Read. */
  int64_t ldx;               /**< In elements. */
  const void *dy;            /**< NULL: the values; otherwise the gradient. */
  int64_t lddy;              /**< In elements. */
  void *y;                   /**< The values, or the gradient dX. */
  int64_t ldy;               /**< In elements. */
} sg_backend_clamp;

/** Each element of Y becomes the same bytes; column major. Any type. */
typedef struct sg_backend_fill {
  sg_backend_command header; /**< SG_BACKEND_FILL. */
  int64_t m;                 /**< Rows of Y. */
  int64_t n;                 /**< Its columns. */
  sg_dtype type;             /**< Of Y. */
  uint64_t pattern[2];       /**< The element in the order of memory, repeated. */
  void *y;                   /**< Written. */
  int64_t ldy;               /**< In elements. */
} sg_backend_fill;

/** y[i] = the sum over j of a[i][j] * b[i][j]; 0 without columns, where A and B are not accessed. Types and arithmetic are those
 * of layers.h. The elements of the rows of A and B are adjacent (a_col and b_col are 1), or those of their columns are (a_row and
 * b_row are 1). Y overlaps neither. */
typedef struct sg_backend_row_dot {
  sg_backend_command header; /**< SG_BACKEND_ROW_DOT. */
  int64_t rows;              /**< Of A, B and Y. */
  int64_t cols;              /**< Of A and B; may be 0. */
  sg_dtype type;             /**< Of A, B and Y. */
  const void *a;             /**< Read; NULL without columns. */
  int64_t a_row;             /**< From one row to the next, in elements. */
  int64_t a_col;             /**< From one column to the next, in elements. */
  const void *b;             /**< Read; NULL without columns. */
  int64_t b_row;             /**< As a_row. */
  int64_t b_col;             /**< As a_col. */
  void *y;                   /**< The result. */
  int64_t y_row;             /**< From one element to the next, in elements. */
} sg_backend_row_dot;

/** y[i] = the sum, mean, maximum or minimum over j of x[i][j], as sg_row_reduce_desc describes it. The elements of the rows of X are
 * adjacent (x_col is 1), or those of its columns are (x_row is 1). Y does not overlap X. */
typedef struct sg_backend_row_reduce {
  sg_backend_command header; /**< SG_BACKEND_ROW_REDUCE. */
  int64_t rows;              /**< Of X and Y. */
  int64_t cols;              /**< Of X; may be 0. */
  sg_dtype type;             /**< Of X and Y: f64, f32, f16 or bf16. */
  sg_reduction reduction;    /**< SUM, MEAN, MAX or MIN. */
  const void *x;             /**< Read; NULL without columns. */
  int64_t x_row;             /**< From one row to the next, in elements. */
  int64_t x_col;             /**< From one column to the next, in elements. */
  void *y;                   /**< The result. */
  int64_t y_row;             /**< From one element to the next, in elements. */
} sg_backend_row_reduce;

/** The cross entropy of each row, as sg_cross_entropy_desc describes it, or its gradient, as sg_cross_entropy_backward_desc does.
 * Rows are contiguous. The gradient may be X itself. */
typedef struct sg_backend_cross_entropy {
  sg_backend_command header; /**< SG_BACKEND_CROSS_ENTROPY. */
  int64_t rows;              /**< Of X, and values of Y or dY. */
  int64_t cols;              /**< Of X; > 0. */
  sg_dtype type;             /**< Of all matrices: f64, f32, f16 or bf16. */
  int32_t index_bytes;       /**< Of an index: 4 or 8. */
  const void *x;             /**< Read. */
  int64_t x_row;             /**< From row to row of X, in elements. */
  const void *indices;       /**< Read; contiguous, aligned to their size. */
  void *y;                   /**< The result; NULL: the gradient. */
  int64_t y_row;             /**< From value to value of Y, in elements. */
  const void *dy;            /**< Of the gradient; NULL: ones. Read. */
  int64_t dy_row;            /**< From value to value of dY. */
  void *dx;                  /**< The gradient; NULL if there is Y. */
  int64_t dx_row;            /**< From row to row of dX. */
  double scale;              /**< Of the gradient. */
} sg_backend_cross_entropy;

/** Row indices[i] of the table += row i of X, as sg_scatter_add_desc describes it. Rows are contiguous. X does not overlap the table. */
typedef struct sg_backend_scatter_add {
  sg_backend_command header; /**< SG_BACKEND_SCATTER_ADD. */
  int64_t rows;              /**< Of X, and indices. */
  int64_t cols;              /**< Of X and the table. */
  int64_t table_rows;        /**< Of the table. */
  sg_dtype type;             /**< Of X and the table: f64, f32, f16 or bf16. */
  int32_t index_bytes;       /**< Of an index: 4 or 8. */
  int32_t from_end;          /**< 1: an index from -table_rows to -1 counts from the end. */
  uint32_t reserved;         /**< 0. */
  const void *x;             /**< Read. */
  int64_t x_row;             /**< From row to row of X, in elements. */
  const void *indices;       /**< Read; contiguous, aligned to their size. */
  void *table;               /**< Read and written. */
  int64_t table_row;         /**< From row to row of the table. */
} sg_backend_scatter_add;

/** The pooling of images, as sg_pool2d_desc describes it, or its gradient, as sg_pool2d_backward_desc does. The result overlaps no
 * operand. */
typedef struct sg_backend_pool {
  sg_backend_command header; /**< SG_BACKEND_POOL. */
  sg_backend_windows of;     /**< Of X and dX; the fields of positions and columns are 0. */
  int64_t y_image;           /**< From image to image of Y and dY, in elements. */
  int64_t y_channel;         /**< From channel to channel. */
  int64_t y_row;             /**< From row to row of an image. */
  int64_t y_pixel;           /**< From pixel to pixel of a row. */
  const void *x;             /**< Read; NULL in the gradient of an average. */
  void *y;                   /**< The result; NULL: the gradient. */
  const void *dy;            /**< Of the gradient; read. */
  void *dx;                  /**< The gradient; NULL if there is Y. Strides are those of X. */
  int64_t dx_image;          /**< From image to image of dX. */
  sg_dtype type;             /**< Of all operands: f64, f32, f16 or bf16. */
  sg_pooling pooling;        /**< MAX, AVERAGE or AVERAGE_INSIDE. */
} sg_backend_pool;

/** The gradient of a norm of each row with respect to X, as sg_norm_backward_desc describes it, and, for the sums that are dgamma, the
 * products of dY and the normalized X. Rows are contiguous. dX may be dY or X itself; the products overlap nothing. */
typedef struct sg_backend_norm_backward {
  sg_backend_command header; /**< SG_BACKEND_NORM_BACKWARD. */
  int64_t rows;              /**< Of all matrices. */
  int64_t cols;              /**< Of all matrices. */
  sg_dtype type;             /**< Of dY, X, gamma and dX: f64, f32, f16 or bf16. */
  sg_norm_kind kind;         /**< LAYER or RMS. */
  double epsilon;            /**< >= 0. */
  const void *dy;            /**< Read. */
  int64_t dy_row;            /**< From row to row of dY, in elements. */
  const void *x;             /**< Read. */
  int64_t x_row;             /**< From row to row of X. */
  const void *gamma;         /**< One for each column, contiguous; NULL: ones. */
  void *dx;                  /**< The result. */
  int64_t dx_row;            /**< From row to row of dX. */
  void *products;            /**< Of each group of rows the sum of dY times the normalized X, of f64 for f64, otherwise of f32; NULL:
                              * none. Written. */
  int64_t products_row;      /**< From group to group of the products. */
  void *dy_sums;             /**< Of each group of rows the sum of dY, of the same type; NULL: none. Written. */
  int64_t dy_sums_row;       /**< From group to group. */
  int64_t group_rows;        /**< Rows of a group, of which the last may have fewer; > 0. */
} sg_backend_norm_backward;

/** A step of an optimizer on contiguous values, as sg_sgd_desc and sg_adam_desc describe it. */
typedef struct sg_backend_optimizer {
  sg_backend_command header; /**< SG_BACKEND_OPTIMIZER. */
  int64_t elements;          /**< > 0. */
  sg_dtype type;             /**< Of parameters and gradient: f64, f32, f16 or bf16. */
  int32_t is_adam;           /**< 1: Adam; 0: SGD. */
  int32_t nesterov;          /**< Of SGD. */
  int32_t decoupled;         /**< Of Adam. */
  void *parameters;          /**< Read and written. */
  const void *gradient;      /**< Read. */
  void *first;               /**< The first moment, or SGD's momentum or NULL: of f64 for f64, otherwise of f32. Read and written. */
  void *second;              /**< The second moment; NULL of SGD. */
  double rate;               /**< Finite. */
  double beta1;              /**< Of Adam; of SGD the momentum. */
  double beta2;              /**< Of Adam. */
  double epsilon;            /**< Of Adam. */
  double weight_decay;       /**< >= 0. */
  double correction1;        /**< Of Adam: 1 - beta1^t. */
  double correction2;        /**< Of Adam: 1 - beta2^t. */
} sg_backend_optimizer;

/** B = the X of op(A) * X = alpha * B or X * op(A) = alpha * B, or alpha * op(A) * B or alpha * B * op(A); column major. Of A, which
 * is m x m on the left and n x n on the right, one triangle is read. */
typedef struct sg_backend_triangular {
  sg_backend_command header; /**< SG_BACKEND_TRIANGULAR. */
  int64_t m;                 /**< Rows of B. */
  int64_t n;                 /**< Columns of B. */
  sg_dtype type;             /**< Of A and B: f64, f32, c64 or c128. */
  sg_triangular_kind kind;   /**< A solve or a product. */
  sg_side side;              /**< Where op(A) stands. */
  sg_triangle triangle;      /**< Of A as stored. */
  sg_transpose op;                  /**< SG_TRANSPOSE_C only with complex types. */
  sg_diagonal diagonal;      /**< Of A. */
  sg_scalar alpha;           /**< A host value; not 0. */
  const void *a;             /**< Read. */
  int64_t lda;               /**< In elements. */
  void *b;                   /**< Read and replaced; does not overlap A. */
  int64_t ldb;               /**< In elements. */
} sg_backend_triangular;

/** What an sg_backend_symmetric computes. */
typedef enum sg_backend_symmetric_kind SG_ENUM_INT {
  SG_BACKEND_SYMMETRIC_MULTIPLY = 0, /**< C = alpha * A * B + beta * C, or alpha * B * A + beta * C; of A one triangle is read. */
  SG_BACKEND_SYMMETRIC_RANK_K = 1,   /**< C = alpha * op(A) * op(A)' + beta * C in one triangle of C; the other is neither read nor
                                          written. */
  SG_BACKEND_SYMMETRIC_RANK_2K = 2   /**< C = alpha * op(A) * op(B)' + alpha' * op(B) * op(A)' + beta * C, likewise. */
} sg_backend_symmetric_kind;

/** A product with a symmetric matrix, or an update of one; column major. The ' is the transpose, or of a Hermitian matrix the
 * conjugate transpose, and of alpha the conjugate. */
typedef struct sg_backend_symmetric {
  sg_backend_command header;      /**< SG_BACKEND_SYMMETRIC. */
  sg_backend_symmetric_kind kind; /**< A product or an update. */
  int64_t m;                      /**< Rows of C. */
  int64_t n;                      /**< Columns of C; of an update m. */
  int64_t k;                      /**< Of an update: columns of op(A); 0: A and B are NULL, and C is scaled. */
  sg_dtype type;                  /**< Of all: f64, f32, c64 or c128. */
  sg_symmetry symmetry;           /**< Of A of a product, of C of an update. Hermitian only with complex types. */
  sg_triangle triangle;           /**< Of the same. */
  sg_side side;                   /**< Of a product: where A stands. */
  sg_transpose op;                       /**< Of an update: N, or T of a symmetric, C of a Hermitian one. */
  sg_scalar alpha;                /**< A host value; not 0 unless k is. Real of a Hermitian RANK_K. */
  sg_scalar beta;                 /**< A host value; 0 does not read C. Real of a Hermitian update. */
  const void *a;                  /**< Read. */
  int64_t lda;                    /**< In elements. */
  const void *b;                  /**< Read; NULL of RANK_K. */
  int64_t ldb;                    /**< In elements. */
  void *c;                        /**< The result; overlaps no other operand. */
  int64_t ldc;                    /**< In elements. */
} sg_backend_symmetric;

/** The memory space of an address. */
typedef struct sg_backend_space {
  sg_memory_kind kind; /**< Never SG_MEMORY_AUTO. */
  int32_t device;      /**< With SG_MEMORY_DEVICE 0: the stream's own device. With SG_MEMORY_PEER the other device, as
                            `device_name` takes it; -1: unknown. Otherwise 0. */
} sg_backend_space;

/** `height` runs of `width` bytes from src to dst. */
typedef struct sg_backend_copy {
  sg_backend_command header; /**< SG_BACKEND_COPY. */
  void *dst;          /**< First byte written. */
  const void *src;    /**< First byte read. */
  int64_t dst_pitch;  /**< From one run to the next in dst, in bytes; >= width. */
  int64_t src_pitch;  /**< The same in src. */
  int64_t width;      /**< Bytes in a run; > 0. */
  int64_t height;     /**< Runs; > 0. */
  sg_backend_space dst_space; /**< The memory of dst. */
  sg_backend_space src_space; /**< The memory of src. */
} sg_backend_copy;

/** A node of a graph: commands as `enqueue` takes them. */
typedef struct sg_backend_node {
  const sg_backend_command *const *commands; /**< No copy of pageable memory among them. */
  int32_t command_count;                     /**< >= 1. */
  int32_t before_count;                      /**< Number of entries of `before`. */
  const int32_t *before;                     /**< Nodes that it runs after, each below its own index. */
  sg_backend_device *device;                 /**< That runs it: the graph's, or another of the context's; NULL: the graph's. */
} sg_backend_node;

/** A device model that the core has parsed; the core's own type. */
typedef struct sg_backend_model sg_backend_model;
/** A parsed machine model; the core's own type. */
typedef struct sg_backend_machine sg_backend_machine;

/** Levels of log messages, as in the variable SG_LOG; docs/logging.md. */
typedef enum sg_backend_log_level SG_ENUM_INT {
  SG_BACKEND_LOG_ERROR = 1, /**< Work failed. */
  SG_BACKEND_LOG_WARN = 2,  /**< Work continues, but not as the application may expect. */
  SG_BACKEND_LOG_INFO = 3,  /**< A choice, once for each subject. */
  SG_BACKEND_LOG_DEBUG = 4  /**< Everything else. */
} sg_backend_log_level;

/** Areas of log messages. */
typedef enum sg_backend_log_area SG_ENUM_INT {
  SG_BACKEND_LOG_PLUGIN = 1,  /**< Loading of plugins, and discovered devices. */
  SG_BACKEND_LOG_MEMORY = 2,  /**< Memory of the device, pinned memory. */
  SG_BACKEND_LOG_FALLBACK = 3 /**< A slower method instead of a refused or missing one. */
} sg_backend_log_area;

/** The core's services for backends. A backend that simulates needs the planner's cost functions. */
typedef struct sg_backend_host {
  uint32_t struct_size; /**< sizeof(sg_backend_host) of the core. */
  /** Parses a device model (docs/device-model.md). On failure a reason is written to `message`. */
  sg_status (*model_parse)(const char *json, sg_backend_model **out, char *message);
  /** Frees a parsed model; NULL is a no-op. */
  void (*model_free)(sg_backend_model *model);
  /** Seconds of a command alone on the device, or of a copy alone on its engine; `both_ways`: the opposite direction is
   *  busy, too; of a marker 0. Negative if the model has no such command. */
  double (*command_seconds)(const sg_backend_model *model, const sg_backend_command *command, int32_t both_ways);
  /** Number of copy engines of the model: 1 means that both directions share one. */
  int32_t (*copy_engines)(const sg_backend_model *model);
  /** Bytes of device memory of the model. */
  uint64_t (*memory_bytes)(const sg_backend_model *model);
  /** Multiprocessors of the model. */
  int32_t (*compute_units)(const sg_backend_model *model);
  /** Seconds of a batch as in `enqueue`; negative if the model has no such command. */
  double (*batch_seconds)(const sg_backend_model *model, const sg_backend_command *const *commands, int32_t count);
  /** 1 if SG_LOG enables such messages, otherwise 0. Costs a few ns. Any thread; never blocks. */
  int32_t (*log_enabled)(sg_backend_log_level level, sg_backend_log_area area);
  /** Writes one message to the log if such messages are enabled: about 1000 bytes of it, control characters escaped. Any
   *  thread; blocks as standard error does. */
  void (*log)(sg_backend_log_level level, sg_backend_log_area area, const char *text);
  /** Parses a machine model (docs/device-model.md, "Machines"). On failure a reason is written to `message`. */
  sg_status (*machine_parse)(const char *json, sg_backend_machine **out, char *message);
  /** Frees a parsed machine; NULL is a no-op. */
  void (*machine_free)(sg_backend_machine *machine);
  /** Number of limits that the machine's copies share. */
  int32_t (*limit_count)(const sg_backend_machine *machine);
  /** Bytes per second of a limit. */
  double (*limit_rate)(const sg_backend_machine *machine, int32_t limit);
  /** How often the bytes of a copy from one device to another cross a limit; -1: the host. */
  int32_t (*limit_crossings)(const sg_backend_machine *machine, int32_t limit, int32_t from, int32_t to);
  /** Bytes per second of a copy from one device's memory to another's, alone. */
  double (*peer_rate)(const sg_backend_machine *machine, int32_t from, int32_t to);
} sg_backend_host;

/** Another device of the backend, and the connection to it; as in sg_device_peer. */
typedef struct sg_backend_peer {
  double bytes_per_second;  /**< Of all links of the connection together, each way; 0: unknown. */
  int32_t device;           /**< The other device, as `device_name` takes it. */
  sg_link_class link_class; /**< Class of the connection. */
  int32_t links;            /**< Parallel links of the connection; 0: unknown, or SG_LINK_HOST. */
  int32_t reserved[3];      /**< 0. */
} sg_backend_peer;

/** The links and partitions of a device; as in sg_device_info. */
typedef struct sg_backend_facts {
  uint32_t struct_size;           /**< Set by the core; the backend writes no more, and 0 to fields that it does not know. */
  int32_t nvlinks;                /**< Active NVLinks; -1: unknown. */
  double nvlink_bytes_per_second; /**< Of all of them, each way; 0: unknown, or none. */
  char mig[32];                   /**< "off", "on", "unknown", the slice's profile, or "": not supported. */
  sg_backend_peer peers[SG_MAX_PEERS]; /**< The other devices of the backend, in the order of their indices. */
  int32_t peer_count;             /**< Entries of `peers`. */
  int32_t reserved;               /**< 0. */
  char uuid[48];                  /**< Its UUID, as device_open takes it, or "": none. */
} sg_backend_facts;

/** The functions of a backend. "Required" slots are not NULL; the others say what NULL means. */
typedef struct sg_backend_ops {
  uint32_t abi_version; /**< SG_BACKEND_ABI_VERSION. */
  uint32_t struct_size; /**< sizeof(sg_backend_ops) of the backend. */
  const char *name;     /**< "cpu", "sim", "cuda". */

  /** Required. Whether this backend can work here; if not, `reason` says why (at most `size` bytes with the NUL). Called once. */
  sg_status (*probe)(char *reason, uint64_t size);
  /** Required. Number of devices. */
  int32_t (*device_count)(void);
  /** Required. Name of device `index` after the colon ("h200" of "sim:h200", "0" of "cuda:0"; "" for the only one). */
  sg_status (*device_name)(int32_t index, char *name, uint64_t size);
  /** Required. Opens the device of that name (also uncounted names, such as the path of a model file). On
   *  failure a reason is written to `message` (SG_BACKEND_MESSAGE_SIZE bytes). `host` outlives the device. */
  sg_status (*device_open)(const sg_backend_host *host, const char *name, sg_backend_device **out, char *message);
  /** Required. Closes it; it has no streams, events or memory left. Never fails. */
  void (*device_close)(sg_backend_device *device);
  /** Required. The device model as JSON (docs/device-model.md); belongs to the device, valid until it is closed. */
  const char *(*device_model)(sg_backend_device *device);
  /** Required. Text of the latest failure of a function called by this thread on this device. */
  const char *(*last_message)(sg_backend_device *device);

  /** Required. Device memory, aligned to 256 bytes. SG_STATUS_OUT_OF_MEMORY if there is none. */
  sg_status (*mem_alloc)(sg_backend_device *device, uint64_t bytes, void **out);
  /** Required. Frees it; NULL is a no-op. Nothing in flight uses it. */
  void (*mem_free)(sg_backend_device *device, void *memory);
  /** Required. Host memory that the device copies from and to at full speed, aligned to 4096 bytes. */
  sg_status (*host_alloc)(sg_backend_device *device, uint64_t bytes, void **out);
  /** Required. Frees it; NULL is a no-op. */
  void (*host_free)(sg_backend_device *device, void *memory);
  /** Optional: if NULL, registering is accepted without effect. */
  sg_status (*host_register)(sg_backend_device *device, void *memory, uint64_t bytes);
  /** Optional: NULL together with host_register. */
  sg_status (*host_unregister)(sg_backend_device *device, void *memory);
  /** Optional: if NULL, there is one memory: any pointer may be passed to any command (the cpu backend). Otherwise the
   *  memory space of [memory, memory + bytes); never fails: memory unknown to the device is pageable. */
  sg_backend_space (*memory_space)(sg_backend_device *device, const void *memory, uint64_t bytes);

  /** Required. A new stream; priority -1 low, 0 normal, 1 high. */
  sg_status (*stream_create)(sg_backend_device *device, int32_t priority, sg_backend_stream **out);
  /** Required. Destroys it; nothing is in flight on it. */
  void (*stream_destroy)(sg_backend_stream *stream);
  /** Optional: if NULL, native streams cannot be wrapped. The native stream stays the caller's. */
  sg_status (*stream_wrap)(sg_backend_device *device, void *native, sg_backend_stream **out);
  /** Required. Commands enqueued after this run after `event` as last recorded. */
  sg_status (*stream_wait)(sg_backend_stream *stream, sg_backend_event *event);
  /** Optional: if NULL, the device has real time. For a device of virtual time: commands enqueued after this are independent
   *  of those enqueued before, and all their dependencies have completed by `device_ns` on the device's clock; so on that
   *  clock they start then at the earliest, and wait for no earlier command of the stream. */
  sg_status (*stream_begin_at)(sg_backend_stream *stream, int64_t device_ns);

  /** Required. A new event. */
  sg_status (*event_create)(sg_backend_device *device, sg_backend_event **out);
  /** Required. Destroys it; no stream waits for it. */
  void (*event_destroy)(sg_backend_event *event);
  /** Required. The event happens when all commands so far in the stream have completed. */
  sg_status (*event_record)(sg_backend_event *event, sg_backend_stream *stream);

  /** Required. 1 if the device supports the command: its kind, types, arithmetic and epilogue; otherwise 0. Shapes are valid;
   *  pointers of the command are not dereferenced, only compared with NULL. */
  int32_t (*supports)(sg_backend_device *device, const sg_backend_command *command);
  /** Required. Enqueues one command, of any kind; or, with `takes_batches`, a batch: `count` >= 2 independent GEMMs of one
   *  pair of types and one compute, without pointer arrays. `done` is called once, for all of them. A single command,
   *  with its pointer arrays, may be freed after the call, and `statuses` is NULL. A batch and its `statuses` stay valid
   *  until `done` is called, with the failure of the batch if there is one; a GEMM that fails alone gets its own status in
   *  `statuses`, which are SG_STATUS_OK before. SG_STATUS_UNSUPPORTED if `supports` returns 0. */
  sg_status (*enqueue)(sg_backend_stream *stream, const sg_backend_command *const *commands, int32_t count,
                       sg_status *statuses, sg_backend_done done);

  /** Optional: if NULL, not needed. The process exits: let running commands complete, drop the others (their `done` gets
   *  SG_STATUS_SHUTDOWN), and return when none runs. Called once, from an atexit handler. */
  void (*drain)(sg_backend_device *device);

  /** Optional: if NULL, 0. 1 if `enqueue` and graph nodes accept batches, of any number of GEMMs; otherwise 0. */
  int32_t (*takes_batches)(sg_backend_device *device);
  /** Optional: if NULL, the backend's own threads report completions. Reports, on the calling thread, the commands that
   *  have completed by now, unless another thread is reporting. Never blocks. A thread that waits for a job calls it for
   *  some milliseconds at most before it sleeps, because waking a thread takes longer than a small GEMM. */
  void (*poll)(sg_backend_device *device);

  /** Optional: if NULL, the core replays graphs command by command. Makes a graph of commands that one call launches, on
   *  device memory except for copies; some may run on other devices than `device`, whose streams launch it. `nodes`, their commands and their pointer arrays are read during the call only. If
   *  it fails the core replays. */
  sg_status (*graph_create)(sg_backend_device *device, const sg_backend_node *nodes, int32_t count,
                            sg_backend_graph **out);
  /** NULL together with graph_create. Destroys it; it is not in flight. */
  void (*graph_destroy)(sg_backend_graph *graph);
  /** NULL together with graph_create. Runs it as one command of the stream. Launches of one graph are serialized. */
  sg_status (*graph_launch)(sg_backend_stream *stream, sg_backend_graph *graph, sg_backend_done done);

  /** Optional: if NULL, free memory is unknown. Approximate bytes of device memory that mem_alloc could provide now: they
   *  may be fragmented, and other processes may allocate them first. */
  sg_status (*mem_free_bytes)(sg_backend_device *device, uint64_t *out_bytes);
  /** Optional: if NULL, sg_backend_gemm.compute_units has no effect, and shares of the device are refused. The device's
   *  multiprocessors, the maximum of compute_units. */
  int32_t (*compute_units)(sg_backend_device *device);
  /** Optional: if NULL, kernels are not timed. From now on the device times its kernels for each new GEMM shape once, on its
   *  first use, and uses the fastest. Called at most once, before the first command. */
  sg_status (*tune)(sg_backend_device *device);

  /** Optional: if NULL, native events can be neither wrapped nor exported. Wraps a native event, which stays the caller's:
   *  recording records it, and waiting waits for its latest record by any code. SG_STATUS_INVALID_ARGUMENT if it is no
   *  event. Destroying a wrapped or exported event does not affect pending waits for it. */
  sg_status (*event_wrap)(sg_backend_device *device, void *native, sg_backend_event **out);
  /** NULL together with event_wrap. The native event under it, for the caller to wait for or to query. Never fails. */
  void *(*event_native)(sg_backend_event *event);
  /** NULL together with event_wrap. Whether its latest record, by any code, has happened: SG_STATUS_OK,
   *  SG_STATUS_NOT_READY, or a failure. */
  sg_status (*event_query)(sg_backend_event *event);
  /** Optional: if NULL, all fields are unknown. Never fails. */
  void (*facts)(sg_backend_device *device, sg_backend_facts *facts);
  /** Optional: if NULL, no multiprocessors can be reserved. A stream like stream_create's whose kernels run only on
   *  multiprocessors reserved for it: up to `*units`, which is >= 1, of those that no other such stream of the process
   *  has. `*units` receives their number. Other streams run there too. SG_STATUS_UNSUPPORTED if none is left. */
  sg_status (*stream_create_within)(sg_backend_device *device, int32_t priority, int32_t *units,
                                    sg_backend_stream **out);
  /** Optional: if NULL, only the device's streams run commands. Runs one command, or a batch as `enqueue` takes it but
   *  without statuses, on the calling thread, as a stream would. Idle threads of the device may compute some of the
   *  batch; which thread computes a command does not change the result. Returns when all have completed: SG_STATUS_OK,
   *  or the status of the first one, in the order of the batch, that failed; the text of a failure is last_message's.
   *  `out_busy_ns`: NULL, or receives the time that the commands took, summed over the threads, if any was run. Any
   *  thread, beside all streams. */
  sg_status (*run_here)(sg_backend_device *device, const sg_backend_command *const *commands, int32_t count,
                        int64_t *out_busy_ns);
  /** Optional: if NULL, only the device's own threads run commands. Runs one command on the calling thread, with its `done`:
   *  the next command of a stream, not begun by any thread, for which `wanted(done)` returns non-zero. Returns 1 if it did,
   *  0 if there is none. `wanted` must not call the backend. */
  int32_t (*run_waiting)(sg_backend_device *device, int32_t (*wanted)(const sg_backend_done *done, void *user), void *user);
  /** Optional: if NULL, running commands cannot be cancelled. From now on the device calls `stopped` between parts of a long
   *  command, with that command's `done`, and stops it with SG_STATUS_CANCELLED if the result is not 0. Called once, before
   *  the first command. `stopped` may be called from any thread, does not block and does not call the backend. */
  void (*stop_when)(sg_backend_device *device, int32_t (*stopped)(const sg_backend_done *done));
  /** Optional: if NULL, no difference. While `on` is 1 the device itself times the start and the end of each command, also
   *  where that costs time. Never fails. Any thread. */
  void (*time_commands)(sg_backend_device *device, int32_t on);
  /** Optional: if NULL, the device is in no machine that the backend describes. The machine that the device is part of, as
   *  JSON (docs/device-model.md, "Machines"), or NULL; belongs to the device, valid until it is closed. */
  const char *(*machine_model)(sg_backend_device *device);
  /** Optional: if NULL, a name is of one device. `name`: a device's name, after the colon. Writes the name of device `index`
   *  of the machine that it names as a whole; SG_STATUS_NO_DEVICE: there is none, or it names one device. */
  sg_status (*machine_device_name)(const char *name, int32_t index, char *out, uint64_t size);
  /** Optional: if NULL, the device's place among those that `device_count` counts, by its name. The index by which other
   *  devices of the backend name its memory (sg_backend_space.device). */
  int32_t (*device_index)(sg_backend_device *device);
  /** Optional: if NULL, devices copy from each other through the host's memory. Called for each ordered pair of a
   *  context's devices before the first command of either: `device` is to copy from the memory of `other`.
   *  `bytes_per_second`: of the link between them by the machine's model, for devices that simulate; 0: unknown; negative:
   *  their link does not work, and copies are to cross the host's links from now on (SG_STATUS_OK).
   *  SG_STATUS_OK: such copies take the devices' own link. SG_STATUS_UNSUPPORTED, with
   *  last_message's text: they are correct, and cross the host's links. */
  sg_status (*peer_connect)(sg_backend_device *device, sg_backend_device *other, double bytes_per_second);
  /** Optional: if NULL, a device is never lost. SG_STATUS_OK; SG_STATUS_BACKEND_FAILURE, with last_message's text, of a
   *  device that is lost: it runs no further command, and each of its calls fails. Never blocks. Any thread. */
  sg_status (*device_status)(sg_backend_device *device);
  /** Optional: if NULL, a stream accepts commands as long as its device does. SG_STATUS_OK; SG_STATUS_BACKEND_FAILURE, with
   *  last_message's text, of a stream that waits for an event of another device, which is lost, and that the backend has
   *  given up: its commands have completed as failed, it accepts no others, and destroying it does not wait. Memory that
   *  those commands use must stay allocated, and unused, until the process ends: the device may still run them. Never
   *  blocks. Any thread. */
  sg_status (*stream_status)(sg_backend_stream *stream);
} sg_backend_ops;

/** The one symbol of a plugin: returns its table, which lives as long as the process. */
typedef const sg_backend_ops *(*sg_backend_entry_fn)(void);
/** The plugin's symbol name for SG_BACKEND_ABI_VERSION 3. */
#define SG_BACKEND_ENTRY_SYMBOL "sg_backend_entry_3"

SG_END_DECLS

#endif /* STREAMGEMM_BACKEND_H */
