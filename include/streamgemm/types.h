/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file types.h
 * @brief Element types, layouts, operations, scalars, the matrix view, and the opaque handles.
 *
 * Handles: a function that creates an object returns one reference, `retain` adds one, `release` releases one. NULL is
 * allowed in `retain` and `release` and does nothing. A child keeps its parent alive, so handles may be released in any
 * order, also with work in flight: the work completes first. A handle is a token, not an address: the result of a stale,
 * foreign or random value is SG_STATUS_INVALID_HANDLE. After fork() the same holds in the child for every inherited
 * handle; the child may create a context of its own.
 *
 * Descriptor and option structs begin with their size. Start each from its SG_..._INIT macro, or from sg_struct_init where
 * there are no macros: they set the size and the defaults, some of which, as alpha = 1, are not zero, so a struct of zeros
 * is not one of defaults. The structs only grow at the end. A program that was compiled with newer headers than
 * the library's runs as long as it leaves the fields that the library does not know 0; one that sets them gets
 * SG_STATUS_UNSUPPORTED. Structs without a size, members of others or elements of arrays (sg_matrix), have a field `reserved` for
 * what later versions add. Every field of that name that the library reads must be 0; another value is SG_STATUS_INVALID_ARGUMENT.
 *
 * The comment of an operand in a descriptor begins with how it is accessed: [in] it is read, [out] written, [inout] both;
 * `optional`: it may be NULL; `for dw`: it is needed only if dw is given. Its shape may follow, by fields of the
 * descriptor, and for untyped memory its type (without one, that of the other operands), and by which field its rows are
 * apart. out_h and out_w are the numbers of windows, gates is 4 of an LSTM and 3 of a GRU, wide is f64 for f64 and else f32.
 */
#ifndef STREAMGEMM_TYPES_H
#define STREAMGEMM_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include <streamgemm/export.h>
#include <streamgemm/status.h>

#if (defined(UINTPTR_MAX) && UINTPTR_MAX < 0xffffffffffffffff) || \
    (defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
#error "StreamGEMM needs a 64-bit little-endian target"
#endif

SG_BEGIN_DECLS

/** An open device with its streams, memory and jobs. See context.h. */
typedef struct sg_context sg_context;
/** An order of submissions. See stream.h. */
typedef struct sg_stream sg_stream;
/** A point in a stream. See event.h. */
typedef struct sg_event sg_event;
/** Device memory. See memory.h. */
typedef struct sg_buffer sg_buffer;
/** One submission and its outcome. See job.h. */
typedef struct sg_job sg_job;
/** A queue of completions. See queue.h. */
typedef struct sg_queue sg_queue;
/** A schedule that is made without running it. See plan.h. */
typedef struct sg_plan sg_plan;
/** Submissions that are recorded once and run together many times. See graph.h. */
typedef struct sg_graph sg_graph;
/** Batches that pass through stages. See pipeline.h. */
typedef struct sg_pipeline sg_pipeline;
/** A recording of what ran when. See trace.h. */
typedef struct sg_trace sg_trace;

/** Element type of a matrix. 0 is not a type. */
typedef enum sg_dtype SG_ENUM_INT {
  SG_DTYPE_F64 = 1,  /**< IEEE binary64, 8 bytes. */
  SG_DTYPE_F32 = 2,  /**< IEEE binary32, 4 bytes. */
  SG_DTYPE_C64 = 3,  /**< Complex: two binary32, real part first, 8 bytes. */
  SG_DTYPE_C128 = 4, /**< Complex: two binary64, real part first, 16 bytes. */
  SG_DTYPE_F16 = 5,  /**< IEEE binary16, 2 bytes. */
  SG_DTYPE_BF16 = 6, /**< bfloat16: the upper half of a binary32, 2 bytes. */
  SG_DTYPE_I8 = 7,   /**< Signed 8-bit integer. No result of arithmetic; fills and copies write it. */
  SG_DTYPE_I32 = 8,  /**< Signed 32-bit integer. The result type of i8 GEMMs. */
  SG_DTYPE_F8_E4M3 = 9, /**< 8-bit float, OCP's E4M3 (the "fn" variant): 4 bits of exponent, 3 of fraction, at most
                             448, least normal 2^-6, least subnormal 2^-9; no infinity; 0x7f and 0xff are NaN.
                             No result of arithmetic; fills and copies write it. */
  SG_DTYPE_F8_E5M2 = 10 /**< 8-bit float, OCP's E5M2, the upper half of a binary16: 5 bits of exponent, 2 of fraction, at
                             most 57344, least normal 2^-14, least subnormal 2^-16, infinities and NaN as in IEEE 754.
                             No result of arithmetic; fills and copies write it. */
} sg_dtype;

/** Storage order of a matrix. */
typedef enum sg_layout SG_ENUM_INT {
  SG_LAYOUT_ROW_MAJOR = 0,   /**< Element (i, j) at i * ld + j; ld >= cols. C and NumPy's default. */
  SG_LAYOUT_COLUMN_MAJOR = 1 /**< Element (i, j) at i + j * ld; ld >= rows. BLAS and Fortran's own. */
} sg_layout;

/** Operation on an operand before the multiplication. */
typedef enum sg_transpose SG_ENUM_INT {
  SG_TRANSPOSE_N = 0, /**< The matrix itself. */
  SG_TRANSPOSE_T = 1, /**< Its transpose. */
  SG_TRANSPOSE_C = 2  /**< Its conjugate transpose; the transpose for real types. */
} sg_transpose;

/**
 * The least accurate arithmetic that the caller allows. A device may compute more accurately, never less: the cpu device
 * computes every f32 GEMM in f32.
 */
typedef enum sg_compute SG_ENUM_INT {
  SG_COMPUTE_EXACT = 0,  /**< Products exact in the operand's format or wider, sums at least in f32 (i32 for i8). */
  SG_COMPUTE_TF32 = 1,   /**< f32 operands may be rounded to 11 significant bits before they are multiplied; in all but exact, to 0 below the normal range. */
  SG_COMPUTE_3XTF32 = 2, /**< f32 operands may be split into a part of 11 significant bits and a rest of 8, and the product
                              of two rests left out. The relative error of each product of two elements from 2^-115 on
                              is at most 2^-17. Only GEMMs with k >= 128 are split: for their sums in f32 no better
                              bound is known. */
  SG_COMPUTE_BF16 = 3,   /**< f32 operands may be rounded to bf16. If A and B are both in pageable memory and the device has
                              memory of its own, they are rounded while they are staged, unless that could be slower, so
                              half the bytes cross the link. Rounding is to nearest, ties to even, with a relative error
                              of at most 2^-8 (subnormal numbers: an error of at most 2^-134); from
                              (2 - 2^-8) * 2^127 on the result is infinity. */
  SG_COMPUTE_BF16X3 = 4, /**< f32 operands may be split into two bf16 parts, and the product of the lesser ones left out. The
                              relative error of each product of two elements from 2^-118 on is at most 2^-14. */
  SG_COMPUTE_F8 = 5      /**< f8 operands may be multiplied by the chip's f8 units. Their products are exact, but partial sums
                              may have fewer bits than f32 before they are added in f32: about 14 significant bits on
                              Hopper. */
} sg_compute;

/** Kind of memory, for a context's device. */
typedef enum sg_memory_kind SG_ENUM_INT {
  SG_MEMORY_AUTO = 0,     /**< Determined from the pointer; the default. */
  SG_MEMORY_PAGEABLE = 1, /**< Ordinary host memory. */
  SG_MEMORY_PINNED = 2,   /**< Page-locked host memory: sg_host_alloc, sg_host_register. */
  SG_MEMORY_DEVICE = 3,   /**< The device's own memory: sg_buffer. */
  SG_MEMORY_PEER = 4      /**< Memory of another device, from and to which this one copies: sg_device_info.peers. */
} sg_memory_kind;

/** Class of the connection between two devices. */
typedef enum sg_link_class SG_ENUM_INT {
  SG_LINK_UNKNOWN = 0, /**< Direct, of an unknown class: each device can access the other's memory. */
  SG_LINK_HOST = 1,    /**< Through the host: neither can access the other's memory, so data passes through host memory. */
  SG_LINK_PCIE = 2,    /**< Direct, over PCIe. */
  SG_LINK_NVLINK = 3   /**< Direct, over NVLink, by way of switches too. */
} sg_link_class;

/** In place of the index of a context's device: any of them. */
#define SG_DEVICE_ANY (-1)

/** Entries of sg_device_info.peers. */
#define SG_MAX_PEERS 16

/**
 * Function that is applied to each element of a result after the whole sum. Its values are those of the sg_function of the
 * same name.
 */
typedef enum sg_activation SG_ENUM_INT {
  SG_ACTIVATION_NONE = 0, /**< Nothing. */
  SG_ACTIVATION_RELU = 1, /**< max(x, 0). Real and integer results. */
  SG_ACTIVATION_GELU = 2  /**< x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), as cuBLASLt's. Real results. */
} sg_activation;

/**
 * Function of elements, of sg_elementwise_desc. At the ends of the range a function f and its derivative f' have their limits:
 *
 * | f                    | f(-inf) | f(+inf) | f'(-inf) | f'(+inf) |
 * |----------------------|---------|---------|----------|----------|
 * | relu                 | 0       | +inf    | 0        | 1        |
 * | gelu, gelu erf, silu | 0       | +inf    | 0        | 1        |
 * | sigmoid              | 0       | 1       | 0        | 0        |
 * | tanh                 | -1      | 1       | 0        | 0        |
 *
 * f and f' of a NaN are NaN. Sums and products, those of gradients too, are IEEE 754's: NaN with a NaN, and infinity times 0
 * is NaN. A zero may have either sign.
 */
typedef enum sg_function SG_ENUM_INT {
  SG_FUNCTION_RELU = 1,     /**< max(a, 0). */
  SG_FUNCTION_GELU = 2,     /**< a/2 * (1 + tanh(sqrt(2/pi) * (a + 0.044715 a^3))), as SG_ACTIVATION_GELU. */
  SG_FUNCTION_GELU_ERF = 3, /**< a/2 * (1 + erf(a / sqrt(2))). */
  SG_FUNCTION_SILU = 4,     /**< a / (1 + e^-a). */
  SG_FUNCTION_SIGMOID = 5,  /**< 1 / (1 + e^-a). */
  SG_FUNCTION_TANH = 6,     /**< tanh(a). */
  SG_FUNCTION_ADD = 7,      /**< a + b: two operands. */
  SG_FUNCTION_MULTIPLY = 8, /**< a * b: two operands. */
  SG_FUNCTION_RELU_GRADIENT = 9,      /**< a * f'(b), where f is relu, and f'(0) is 0: a is the gradient of f's result, b is
                                           f's operand. */
  SG_FUNCTION_GELU_GRADIENT = 10,     /**< a * f'(b), where f is gelu. */
  SG_FUNCTION_GELU_ERF_GRADIENT = 11, /**< a * f'(b), where f is gelu erf. */
  SG_FUNCTION_SILU_GRADIENT = 12,     /**< a * f'(b), where f is silu. */
  SG_FUNCTION_SIGMOID_GRADIENT = 13,  /**< a * f'(b), where f is sigmoid. */
  SG_FUNCTION_TANH_GRADIENT = 14      /**< a * f'(b), where f is tanh. */
} sg_function;

/** Which elements a softmax leaves out, or which keys an attention. */
typedef enum sg_mask SG_ENUM_INT {
  SG_MASK_NONE = 0,           /**< None. */
  SG_MASK_CAUSAL = 1,         /**< In row i those behind column i + mask_offset. */
  SG_MASK_CAUSAL_FROM_END = 2 /**< Of an attention only: for query i the keys behind i + key_length - query_length + mask_offset, where the
                                   lengths are those of its batch. */
} sg_mask;

/** Which elements of a head a rotary embedding rotates together; d is the number of rotated elements. */
typedef enum sg_rotary_pairs SG_ENUM_INT {
  SG_ROTARY_HALVES = 0,     /**< j and j + d/2, for j < d/2: as in GPT-NeoX and Llama. */
  SG_ROTARY_INTERLEAVED = 1 /**< 2j and 2j + 1: as in GPT-J. */
} sg_rotary_pairs;

/** The cell of a recurrent layer (recurrent.h). */
typedef enum sg_cell SG_ENUM_INT {
  SG_CELL_LSTM = 0,            /**< Long short-term memory, without peepholes. */
  SG_CELL_GRU = 1,             /**< Gated recurrent unit; the reset gate is applied to the product with the weights. */
  SG_CELL_GRU_RESET_BEFORE = 2 /**< The reset gate is applied to the state before that product: the ONNX default. */
} sg_cell;

/** The order of the gates in the weights and biases of a recurrent layer. */
typedef enum sg_gate_order SG_ENUM_INT {
  SG_GATE_ORDER_DEFAULT = 0, /**< LSTM: i, f, g, o; GRU: r, z, n: as in PyTorch and cuDNN. */
  SG_GATE_ORDER_ONNX = 1     /**< LSTM: i, o, f, g; GRU: z, r, n. */
} sg_gate_order;

/** Type of the indices of sg_gather_desc. */
typedef enum sg_index_type SG_ENUM_INT {
  SG_INDEX_I32 = 0, /**< Signed integers of 32 bits. */
  SG_INDEX_I64 = 1  /**< Signed integers of 64 bits. */
} sg_index_type;

/** Kind of a normalization. */
typedef enum sg_norm_kind SG_ENUM_INT {
  SG_NORM_LAYER = 0, /**< By mean and variance. */
  SG_NORM_RMS = 1    /**< By the root of the mean square. */
} sg_norm_kind;

/** What sg_row_reduce_desc reduces a row to. */
typedef enum sg_reduction SG_ENUM_INT {
  SG_REDUCTION_SUM = 0,  /**< The sum; 0 without columns. */
  SG_REDUCTION_MEAN = 1, /**< The sum divided by the number of columns; NaN without columns. */
  SG_REDUCTION_MAX = 2,  /**< The greatest element; NaN if one is NaN, minus infinity without columns. */
  SG_REDUCTION_MIN = 3   /**< The least element; NaN if one is NaN, infinity without columns. */
} sg_reduction;

/** What sg_pool2d_desc reduces a window to. */
typedef enum sg_pooling SG_ENUM_INT {
  SG_POOLING_MAX = 0,           /**< The greatest pixel; NaN if one is NaN, minus infinity if all are outside the image. */
  SG_POOLING_AVERAGE = 1,       /**< The sum divided by the number of pixels of a window; those outside the image are zeros. */
  SG_POOLING_AVERAGE_INSIDE = 2 /**< The sum divided by the number of pixels inside the image; 0 if there is none. */
} sg_pooling;

/** How a value of a matrix of sg_dequantize_desc is stored: two's complement. */
typedef enum sg_quantization SG_ENUM_INT {
  SG_QUANTIZATION_I8 = 1, /**< -128 to 127, one in a byte. */
  SG_QUANTIZATION_I4 = 2  /**< -8 to 7, two in a byte, the first in the low four bits. */
} sg_quantization;

/** The side on which a triangular or a symmetric matrix A stands (triangular.h, symmetric.h). */
typedef enum sg_side SG_ENUM_INT {
  SG_SIDE_LEFT = 0, /**< A is the left factor: A * B. */
  SG_SIDE_RIGHT = 1 /**< A is the right factor: B * A. */
} sg_side;

/** The triangle of a square matrix that is read or written, the diagonal included; rows and columns are those of the view,
 * whatever its layout. */
typedef enum sg_triangle SG_ENUM_INT {
  SG_TRIANGLE_LOWER = 0, /**< The elements (i, j) with i >= j. */
  SG_TRIANGLE_UPPER = 1  /**< The elements (i, j) with i <= j. */
} sg_triangle;

/** The diagonal of a triangular matrix. */
typedef enum sg_diagonal SG_ENUM_INT {
  SG_DIAGONAL_STORED = 0, /**< As stored. */
  SG_DIAGONAL_UNIT = 1    /**< Ones; what is stored has no effect. */
} sg_diagonal;

/** What sg_triangular_desc computes. */
typedef enum sg_triangular_kind SG_ENUM_INT {
  SG_TRIANGULAR_SOLVE = 0,   /**< The X of op(A) * X = alpha * B, or of X * op(A) = alpha * B: BLAS's trsm. */
  SG_TRIANGULAR_MULTIPLY = 1 /**< alpha * op(A) * B, or alpha * B * op(A): BLAS's trmm. */
} sg_triangular_kind;

/** How the triangle that is not stored follows from the one that is. */
typedef enum sg_symmetry SG_ENUM_INT {
  SG_SYMMETRY_SYMMETRIC = 0, /**< It is the transpose. */
  SG_SYMMETRY_HERMITIAN = 1  /**< It is the conjugate transpose, and the diagonal is real: its imaginary parts are read as 0 and
                                  written as 0. The same as symmetric for real types. */
} sg_symmetry;

/** Which elements of a result share a value of its bias. */
typedef enum sg_bias SG_ENUM_INT {
  SG_BIAS_PER_COLUMN = 0, /**< One value for each column of C, n in total: the bias of a layer x * W + b. */
  SG_BIAS_PER_ROW = 1     /**< One value for each row of C, m in total. */
} sg_bias;

/** A real or complex scalar; `im` is ignored for real types. For i32 results `re` must be an integer of 32 bits. */
typedef struct sg_scalar {
  double re; /**< Real part. */
  double im; /**< Imaginary part. */
} sg_scalar;

/**
 * A view of a matrix. It owns nothing. Only the rows x cols elements belong to it. Padding between rows (or columns) is
 * never written; in pinned and peer memory the padding of A and B may be read. Nothing after the last element is accessed.
 */
typedef struct sg_matrix {
  void *data;        /**< First element, aligned to its component's size; may be NULL when rows or cols is 0. */
  int64_t rows;      /**< Rows as stored, before any op; >= 0. */
  int64_t cols;      /**< Columns as stored; >= 0. */
  int64_t ld;        /**< Leading dimension in elements; 0 means tight (cols for row major, rows for column major). */
  sg_dtype dtype;    /**< Element type. */
  sg_layout layout;  /**< Row or column major. */
  uint64_t reserved; /**< 0. */
} sg_matrix;

/** Initial value of an sg_matrix: empty, f32, row major. */
#define SG_MATRIX_INIT {NULL, 0, 0, 0, SG_DTYPE_F32, SG_LAYOUT_ROW_MAJOR, 0}

/**
 * Gives a struct its initial value, for languages that cannot use the SG_..._INIT macros: the same bytes. A program that
 * makes many descriptors may call it once and copy the result.
 * @param name The struct's name in C, such as "sg_gemm_desc": any that has an SG_..._INIT macro.
 * @param[out] out_struct The struct, `size` bytes; nothing is read from it. It is not written on failure.
 * @param size The size of the struct as the caller declares it, which becomes its struct_size if it has one. Of an earlier
 * release's struct, which is shorter, that part is set; of a later release's the bytes behind this library's struct become 0.
 * @return SG_STATUS_OK; SG_STATUS_INVALID_ARGUMENT: NULL, no struct of that name, or a size that no release has. Never blocks.
 * Any thread.
 */
SG_API sg_status sg_struct_init(const char *name, void *out_struct, size_t size);

/**
 * Size of one element in bytes; 0 for a value that is not a type.
 * Never blocks. Any thread.
 */
SG_API int32_t sg_dtype_size(sg_dtype dtype);

/**
 * Short name of a type: "f32", "bf16", ...; "unknown" for a value that is not a type.
 * @return A static string. Never blocks. Any thread.
 */
SG_API const char *sg_dtype_name(sg_dtype dtype);

SG_END_DECLS

#endif /* STREAMGEMM_TYPES_H */
