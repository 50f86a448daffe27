/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that submit: what a call's arguments become. */
#ifndef STREAMGEMM_PYTHON_SUBMISSION_H
#define STREAMGEMM_PYTHON_SUBMISSION_H

#include "native.h"

/* Where a submission goes and what may be reached from there: Context._target. */
typedef struct target {
  unsigned long long handle; /* of a context, or of a plan */
  int cuda_device;           /* -1: none */
  int context_id;            /* of the memory that only this context can reach */
  int waits;                 /* a submission waits while as many jobs as it allows are in flight */
} target;

/* The jobs that a submission runs after: those of `after`, and those that are operands. */
typedef struct job_list {
  sg_job **handles;
  int32_t count, capacity;
  sg_job *inline_handles[4];
} job_list;

/* A call while its operands are looked at. */
typedef struct call {
  target to;
  PyObject *job; /* holds the operands */
  job_list after;
  bool in_order; /* false: a recording, which runs after no job: those that are operands must have completed */
  bool copies;   /* operands whose strides no layout has are copied */
} call;

struct product_shape;

/* One operand. */
typedef struct operand {
  const char *name;
  const struct product_shape *result; /* of C, whose shape this must be; NULL of A and B */
  vector_role role;                   /* what one dimension stands for */
  PyObject *list;                     /* its matrices, as a tuple of its own; NULL: it is one array */
  Py_ssize_t list_size;
  int item_ndim;    /* dimensions of an item: 2, 1 of a vector, 0 of the product of two */
  view seen;        /* of the first item of a list */
  sg_matrix matrix; /* of the first item */
  void **items;     /* addresses: of a list's items, and then of the batch's where no stride reaches them */
} operand;

/* C = op(A) op(B), as NumPy's matmul has it (a vector loses its dimension). */
typedef struct product_shape {
  int64_t m, n;
  int batch_ndim, ndim; /* the batch's dimensions come first */
  Py_ssize_t count;     /* items of the batch */
  Py_ssize_t extent[MAX_DIMENSIONS + 2];
} product_shape;

/* operand.c */
bool see_operand(call *in, operand *o, PyObject *given);
/* The array that a Job makes, which the call then runs after; anything else as it is. Borrowed; NULL: an exception. */
PyObject *settled(call *in, PyObject *given, const char *name);
bool see_array(call *in, PyObject *given, const char *name, bool writable, view *out);
void operand_done(operand *o);
bool run_after(call *in, PyObject *job);

/* shape.c */
bool shape_of(const operand *a, sg_op op_a, const operand *b, sg_op op_b, product_shape *out);
bool has_shape(const operand *c, const view *v); /* C, or an item of its list */
/* The stride of an operand from one item of the batch to the next, in elements; o->items where there is none. */
bool spread(operand *o, const product_shape *over, int64_t *stride);
PyObject *shape_tuple(const product_shape *s, bool of_an_item);

/* The arguments that every product takes. */
typedef struct product_arguments {
  PyObject *a, *b, *c, *alpha, *beta, *op_a, *op_b, *compute, *bias, *activation;
} product_arguments;

typedef struct product {
  sg_gemm_desc desc;
  operand a, b, c;
  product_shape shape;
  PyObject *result; /* a new reference */
  bool empty;       /* a batch of no items, which is not submitted */
} product;

/* bias.c, after C is known */
bool scalar_of(PyObject *value, const char *name, sg_scalar *out);
bool see_bias(call *in, product *p, PyObject *given);

/* result.c: an array, or a list of arrays, for a result that the caller gave no room for */
PyObject *new_result(PyObject *like, sg_dtype of_operands, const product_shape *shape, bool listed);

/* product.c */
bool parse_product(PyObject *given, product_arguments *g); /* a tuple of all ten */
void product_init(product *p);                             /* zeroed memory is one, too */
bool fill_product(call *in, product *p, const product_arguments *g);
void product_done(product *p);

/* The arguments that every submission takes. */
typedef struct order_arguments {
  PyObject *stream, *after, *priority, *untracked, *options, *timeout, *label; /* the last three may be NULL */
} order_arguments;

/* A copy as sg_copy_2d_async has it, in bytes. */
typedef struct runs {
  uint64_t width, height, dst_pitch, src_pitch;
} runs;

typedef struct copy {
  void *dst;
  const void *src;
  runs in;
  PyObject *result; /* borrowed: the array that is dst */
} copy;

/* copy.c */
bool fill_copy(call *in, copy *c, PyObject *dst, PyObject *src);
sg_status run_copy(const call *in, const copy *c, const sg_submit *submit, sg_job **out);

/* submit.c */
/* Every submission is parsed as objects, and its order then by fill_order. */
bool target_of(PyObject *given, target *to);
bool call_begin(call *in, PyTypeObject *type);                          /* makes its job */
bool fill_order(call *in, const order_arguments *g, sg_submit *submit); /* after the operands */
void call_done(call *in);
bool ready_to_post(void); /* starts the thread that completes jobs */
/* The job of a submission that was taken, or the exception of one that was not. Takes it from the call. */
PyObject *posted(call *in, sg_submit *submit, sg_status status, sg_job *handle, PyObject *result);

/* blocking.c */
/* Runs it to its end; false: an exception, its own or that of a signal, which has cancelled it. */
bool run_blocking(call *in, const sg_gemm_desc *d, const sg_submit *submit);

#endif
