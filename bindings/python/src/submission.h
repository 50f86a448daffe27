/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that submit: what a call's arguments become. */
#ifndef STREAMGEMM_PYTHON_SUBMISSION_H
#define STREAMGEMM_PYTHON_SUBMISSION_H

#include "native.h"

/* One operand while a call is being put together. */
typedef struct operand {
  const char *name;
  view seen;    /* of the first item when there are several */
  void **items; /* a list of matrices: their addresses; freed after the call */
  Py_ssize_t item_count;
} operand;

/* Where a submission goes and what may be reached from there: Context._target. */
typedef struct target {
  unsigned long long handle; /* of a context, or of a plan */
  int cuda_device;           /* -1: none */
  int context_id;            /* of the memory that only this context can reach */
  int waits;                 /* a submission waits while as many jobs as it allows are in flight */
} target;

/* The arguments that every product takes. */
typedef struct product_arguments {
  PyObject *a, *b, *c, *alpha, *beta, *op_a, *op_b, *compute, *bias, *activation;
} product_arguments;

typedef struct product {
  sg_gemm_desc desc;
  operand a, b, c;
  PyObject *result; /* a new reference */
  bool empty;       /* a batch of no items, which is not submitted */
} product;

/* product.c */
bool reachable(const view *v, const char *name, const target *to);
bool parse_product(PyObject *given, product_arguments *g); /* a tuple of all ten */
int holds_of_product(const product_arguments *g);          /* how many holds fill_product needs */
bool fill_product(product *p, const product_arguments *g, const target *to, hold *holds);
void product_done(product *p);

/* The arguments that every submission takes. */
typedef struct order_arguments {
  unsigned long long stream;
  PyObject *after;
  int priority;
  unsigned int flags;
  unsigned long long options;
} order_arguments;

typedef struct order {
  sg_submit submit;
  sg_job **after;
} order;

/* A copy as sg_copy_2d_async has it, in bytes. */
typedef struct runs {
  uint64_t width, height, dst_pitch, src_pitch;
} runs;

typedef struct copy {
  void *dst;
  const void *src;
  runs in;
} copy;

/* copy.c */
bool fill_copy(copy *c, const target *to, hold *holds, PyObject *dst, PyObject *src); /* needs two holds */
sg_status run_copy(const target *to, const copy *c, const sg_submit *submit, sg_job **out);

/* submit.c */
bool fill_order(order *o, const order_arguments *g);
void order_done(order *o);
bool ready_to_post(void); /* starts the thread that completes jobs */
/* The job of a submission that was taken, or the exception of one that was not. */
PyObject *posted(PyObject *job, order *o, sg_status status, sg_job *handle, PyObject *result);

#endif
