/* SPDX-License-Identifier: Apache-2.0 */
/* Python's operands of a GEMM as an sg_gemm_desc. */
#include <stddef.h>

#include "submission.h"

void gemm_init(gemm_request *p) {
  memset(&p->a, 0, offsetof(operand, seen));
  memset(&p->b, 0, offsetof(operand, seen));
  memset(&p->c, 0, offsetof(operand, seen));
  p->a.items = p->b.items = p->c.items = NULL;
  p->result = NULL;
}

void gemm_done(gemm_request *p) {
  operand_done(&p->a);
  operand_done(&p->b);
  operand_done(&p->c);
  Py_CLEAR(p->result);
}

static bool fill_options(sg_gemm_desc *d, const gemm_arguments *g) {
  const int op_a = enum_of(g->op_a, hook.ops, "op_a"), op_b = enum_of(g->op_b, hook.ops, "op_b");
  const int compute = enum_of(g->compute, hook.computes, "compute");
  const int activation = g->activation == Py_None ? 0 : enum_of(g->activation, hook.activations, "activation");
  if (PyErr_Occurred()) return false;
  d->op_a = (sg_transpose)op_a;
  d->op_b = (sg_transpose)op_b;
  d->compute = (sg_compute)compute;
  d->activation = (sg_activation)activation;
  if (op_a < SG_TRANSPOSE_N || op_a > SG_TRANSPOSE_C || op_b < SG_TRANSPOSE_N || op_b > SG_TRANSPOSE_C)
    return raise_argument("op_a is %d and op_b is %d; an op is 0, 1 or 2", op_a, op_b);
  return scalar_of(g->alpha, "alpha", &d->alpha) && scalar_of(g->beta, "beta", &d->beta);
}

/* The array that C is written to: the caller's, or a new one. A list if an operand is a list, unless the batch has more
 * dimensions than a list has. */
static PyObject *result_of(call *in, const gemm_request *p, const gemm_arguments *g) {
  if (g->c != Py_None) {
    PyObject *array = settled(in, g->c, p->c.name);
    return array ? Py_NewRef(array) : NULL;
  }
  if (p->desc.beta.re != 0 || p->desc.beta.im != 0)
    return raise_argument("beta is not 0, so %s is read: it must be given", p->c.name);
  PyObject *like = p->a.list ? PyTuple_GET_ITEM(p->a.list, 0) : g->a;
  like = settled(in, like, p->a.name);
  if (like && !p->a.list && (PyList_CheckExact(like) || PyTuple_CheckExact(like))) like = NULL;
  return like ? new_result(like, product_dtype(p->a.seen.dtype), &p->shape,
                           (p->a.list || p->b.list) && p->shape.batch_ndim == 1, false, p->c.name)
              : NULL;
}

/* The library also detects two items of C at one address, but does not know Python's dimensions. */
static bool items_are_separate(const operand *c, const gemm_shape *s) {
  const bool empty = s->count == 0 || s->m == 0 || s->n == 0;
  for (int i = 0; !c->list && !empty && i < s->batch_ndim; ++i)
    if (c->seen.strides[i] == 0 && s->extent[i] > 1)
      return raise_argument("the items of %s overlap in memory: its dimension %d has stride 0", c->name, i);
  return true;
}

bool fill_gemm(call *in, gemm_request *p, const gemm_arguments *g) {
  sg_gemm_desc *d = &p->desc;
  *d = (sg_gemm_desc)SG_GEMM_DESC_INIT;
  p->a.name = "a";
  p->a.role = ROW_VECTOR;
  p->b.name = "b";
  p->b.role = COLUMN_VECTOR;
  p->c.name = in->operation && strcmp(in->operation, "matmul") == 0 ? "out" : "c";
  if (!fill_options(d, g) || !see_operand(in, &p->a, g->a) || !see_operand(in, &p->b, g->b) ||
      !shape_of(&p->a, d->op_a, &p->b, d->op_b, &p->shape))
    return false;
  p->result = result_of(in, p, g);
  if (!p->result) return false;
  p->empty = p->shape.count == 0;
  if (p->empty && PyList_CheckExact(p->result) && PyList_GET_SIZE(p->result) == 0)
    return true; /* there is no item to check */
  p->c.result = &p->shape;
  p->c.role = p->a.item_ndim == 1 ? ROW_VECTOR : COLUMN_VECTOR;
  p->c.item_ndim = p->shape.ndim - p->shape.batch_ndim;
  if (!see_operand(in, &p->c, p->result) || !items_are_separate(&p->c, &p->shape) ||
      !spread(&p->a, &p->shape, &d->stride_a) || !spread(&p->b, &p->shape, &d->stride_b) ||
      !spread(&p->c, &p->shape, &d->stride_c))
    return false;
  d->a = p->a.matrix;
  d->b = p->b.matrix;
  d->c = p->c.matrix;
  d->a_array = (const void *const *)p->a.items;
  d->b_array = (const void *const *)p->b.items;
  d->c_array = p->c.items;
  d->batch = p->shape.count;
  return g->bias == Py_None || see_bias(in, p, g->bias);
}

bool has_items(const gemm_request *p) { return !p->empty || raise_argument("a plan and a graph have no empty batch"); }

bool parse_gemm(PyObject *given, gemm_arguments *g) {
  return PyArg_ParseTuple(given, "OOOOOOOOOO", &g->a, &g->b, &g->c, &g->alpha, &g->beta, &g->op_a, &g->op_b,
                          &g->compute, &g->bias, &g->activation);
}
