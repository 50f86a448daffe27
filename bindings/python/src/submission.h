/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that submit: a call's arguments in C. */
#ifndef STREAMGEMM_PYTHON_SUBMISSION_H
#define STREAMGEMM_PYTHON_SUBMISSION_H

#include "calls.h"
#include "native.h"
#include "order.h"

/* The target of a submission and the memory that it can reach: Context._target. */
typedef struct target {
  unsigned long long handle; /* of a context, or of a plan */
  uint64_t cuda_devices;     /* bit i for cuda:i */
  int context_id;            /* of the memory that only this context can reach */
  int waits;                 /* a submission blocks at the job limit */
} target;

/* The jobs that a submission runs after: those of `after`, and operands that are jobs. */
typedef struct job_list {
  sg_job **handles;
  int32_t count, capacity;
  sg_job *inline_handles[4];
} job_list;

/* A call while its operands are read. */
typedef struct call {
  target to;
  PyObject *job;         /* holds the operands */
  const char *operation; /* the method whose arguments messages name; NULL: none */
  job_list after;
  bool in_order;     /* false: a recording, which runs after no job: operands that are jobs must have completed */
  bool is_small;     /* its submission keeps the GIL: releasing it would cost more */
  bool copies;       /* operands whose strides no layout has are copied */
  bool is_planned;   /* operands may have no memory */
  bool is_run_later; /* with other operands */
  bool places_each;  /* a GEMM: its operands may have places of their own */
  sg_memory_kind places[4]; /* of operands without memory: a, b and c of a GEMM; any */
  const char *placed;       /* the first of any */
} call;

/* What is done with an operation, if it is not submitted or recorded: the first number of a tuple in place of a type.
 */
typedef enum operation_use {
  USE_NONE,
  USE_PLAN,     /* (1, address of options or 0): makes a plan; the result is (handle, keeper of a function or None) */
  USE_SUPPORTS, /* (2,): the result is whether the context supports it */
  USE_UPDATE,   /* (3, graph, index, keeper): changes a recorded one; the result is (keeper, result) */
  USE_RUN       /* (4, type, keeper or None): the target is a plan, which it runs; the result is a Job */
} operation_use;

struct gemm_shape;

/* One operand. */
typedef struct operand {
  const char *name;
  const struct gemm_shape *result; /* of C, whose shape this must be; NULL of A and B */
  vector_role role;                /* the meaning of one dimension */
  PyObject *list;                  /* its matrices, as a tuple of its own; NULL: it is one array */
  Py_ssize_t list_size;
  int item_ndim;    /* dimensions of an item: 2, 1 of a vector, 0 of the inner product of two */
  view seen;        /* of the first item of a list */
  sg_matrix matrix; /* of the first item */
  void **items;     /* addresses: of a list's items, then of the batch's if no stride reaches them */
} operand;

/* C = op(A) op(B), as in NumPy's matmul (a vector loses its dimension). */
typedef struct gemm_shape {
  int64_t m, n;
  int batch_ndim, ndim; /* the batch's dimensions come first */
  Py_ssize_t count;     /* items of the batch */
  Py_ssize_t extent[MAX_DIMENSIONS + 2];
} gemm_shape;

/* operand.c */
bool see_operand(call *in, operand *o, PyObject *given);
/* The array that a Job makes, after which the call then runs; any other object unchanged. Borrowed; NULL: an exception.
 */
PyObject *settled(call *in, PyObject *given, const char *name);
bool see_array(call *in, PyObject *given, const char *name, bool writable, view *out);
void operand_done(operand *o);
bool run_after(call *in, PyObject *job);

/* group.c: puts the name of a list and the index of its item before the message of the current exception. */
void name_item(const char *list, Py_ssize_t index);

/* shape.c */
bool shape_of(const operand *a, sg_transpose op_a, const operand *b, sg_transpose op_b, gemm_shape *out);
bool has_shape(const operand *c, const view *v); /* C, or an item of its list */
/* The stride of an operand from one item of the batch to the next, in elements; o->items if there is none. */
bool spread(operand *o, const gemm_shape *over, int64_t *stride);
PyObject *shape_tuple(const gemm_shape *s, bool of_an_item);

/* The arguments of every GEMM. */
typedef struct gemm_arguments {
  PyObject *a, *b, *c, *alpha, *beta, *op_a, *op_b, *compute, *bias, *activation;
} gemm_arguments;

typedef struct gemm_request {
  sg_gemm_desc desc;
  operand a, b, c;
  gemm_shape shape;
  PyObject *result; /* a new reference */
  bool empty;       /* a batch of no items, which is not submitted */
} gemm_request;

/* bias.c, after C is known */
bool scalar_of(PyObject *value, const char *name, sg_scalar *out);
bool see_bias(call *in, gemm_request *p, PyObject *given);

/* result.c: a new array, or a list of arrays, for a result without an array of the caller */
PyObject *new_result(PyObject *like, sg_dtype dtype, const gemm_shape *shape, bool listed, bool by_columns,
                     const char *name);
sg_dtype product_dtype(sg_dtype of_operands); /* of a sum of products: i32 of i8, f32 of f8 */

/* gemm.c */
bool parse_gemm(PyObject *given, gemm_arguments *g); /* a tuple of all ten */
void gemm_init(gemm_request *p);                     /* zeroed memory is valid, too */
bool fill_gemm(call *in, gemm_request *p, const gemm_arguments *g);
void gemm_done(gemm_request *p);
bool has_items(const gemm_request *p); /* an exception if not: a graph records no empty batch */

/* The options of every submission, by their numbers in order.h. */
typedef struct order_arguments {
  PyObject *of[ORDER_COUNT];
  unsigned long long graph; /* records into it; 0: submits */
  operation_use use;
  unsigned long long on; /* address of options, or a graph */
  int index;
  PyObject *earlier; /* the keeper of what was planned or recorded, borrowed, or NULL */
} order_arguments;
int order_of(PyObject *given, void *to); /* a converter of a tuple of options */
/* An integer from low to high, of either sign. */
bool number_of(PyObject *given, const char *name, long long low, unsigned long long high, unsigned long long *to);

typedef struct copy {
  sg_copy_desc desc;
  PyObject *result; /* borrowed: the array that is dst */
} copy;

/* copy.c */
bool fill_copy(call *in, copy *c, PyObject *dst, PyObject *src);

/* submit.c */
/* Every submission is parsed as objects, and its order then by fill_order. */
bool target_of(PyObject *given, target *to);
bool call_begin(call *in, PyTypeObject *type);                          /* makes its job */
bool fill_order(call *in, const order_arguments *g, sg_submit *submit); /* after the operands */
void call_done(call *in);
/* The first and the last steps of a submission: submitted where `type` is the type of its Job, and recorded where it is
 * a graph's handle, an int. The result is the Job, or (keeper, result) of a recording; NULL and an exception. `number`:
 * of a call of calls.h; NO_CALL: there is nothing to submit. */
enum { NO_CALL = -1 };
bool begin_operation(call *in, PyObject *type, order_arguments *order);
bool is_described(const order_arguments *order); /* planned or recorded, and not submitted */
PyObject *finish_operation(call *in, const order_arguments *order, int32_t number, const void *desc, PyObject *result);

/* graph.c: (keeper, more), or the exception of a refused recording */
PyObject *kept(PyObject *keeper, sg_status status, const char *operation, PyObject *more);

/* blocking.c */
/* A GEMM, or an operation that is one: rows x cols of results, each a sum of `depth` products. */
typedef struct blocking_call {
  const void *desc;
  sg_status (*run)(sg_context *on, const void *desc, const sg_submit *submit);
  sg_call_function start;
  int64_t rows, cols, depth, batch;
} blocking_call;

/* Runs it until it completes; false: an exception, its own or that of a signal, which has cancelled it. */
bool run_blocking(call *in, const blocking_call *c, const sg_submit *submit);

#endif
