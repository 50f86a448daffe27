/* SPDX-License-Identifier: Apache-2.0 */
/* A linear layer and its gradients. Rows are along the last dimension of an array; W is a matrix. */
#include <string.h>

#include "submission.h"

/* Rows have a value for each input, or output, of w. */
static bool fits_weight(const view *rows, const char *name, const view *w, int dimension, const char *what) {
  const Py_ssize_t values = rows->shape[rows->ndim - 1];
  if (values == w->shape[dimension]) return true;
  return raise_argument("%s has rows of %zd values; w has %zd %s", name, values, w->shape[dimension], what);
}

static bool weight_of(const view *v, const char *name, sg_matrix *to) {
  if (v->ndim != 2) return raise_argument("%s has %d dimensions; it must be a matrix", name, v->ndim);
  return matrix_of(v, name, to);
}

PyObject *given_or_new(call *in, PyObject *given, const char *name, PyObject *like, sg_dtype dtype,
                       const gemm_shape *shape) {
  if (given == Py_None) return new_result(like, dtype, shape, false);
  PyObject *array = settled(in, given, name);
  return array ? Py_NewRef(array) : NULL;
}

bool has_extents(const view *v, const char *name, const gemm_shape *s) {
  bool same = v->ndim == s->ndim;
  for (int i = 0; same && i < s->ndim; ++i) same = v->shape[i] == s->extent[i];
  if (same) return true;
  PyObject *is = shape_text(v), *should = shape_tuple(s, false);
  if (is && should) raise_argument("%s has shape %R; it must be %R", name, is, should);
  Py_XDECREF(is);
  Py_XDECREF(should);
  return false;
}

/* The shape of x with another last dimension. */
static gemm_shape rows_like(const view *x, Py_ssize_t last) {
  gemm_shape shape = {.ndim = x->ndim};
  memcpy(shape.extent, x->shape, (size_t)x->ndim * sizeof *x->shape);
  shape.extent[x->ndim - 1] = last;
  return shape;
}

static bool options_of(PyObject *op_w, PyObject *compute, sg_op *op, sg_compute *how) {
  const int w = enum_of(op_w, hook.ops, "op_w"), c = PyErr_Occurred() ? -1 : enum_of(compute, hook.computes, "compute");
  if (PyErr_Occurred()) return false;
  *op = (sg_op)w;
  *how = (sg_compute)c;
  return true;
}

typedef struct linear_arguments {
  PyObject *x, *w, *bias, *out, *op_w, *activation, *compute;
} linear_arguments;

static bool fill_linear(call *in, sg_linear_desc *d, PyObject **result, const linear_arguments *g) {
  view x, w, y;
  *d = (sg_linear_desc)SG_LINEAR_DESC_INIT;
  const int activation = g->activation == Py_None ? 0 : enum_of(g->activation, hook.activations, "activation");
  if (PyErr_Occurred() || !options_of(g->op_w, g->compute, &d->op_w, &d->compute)) return false;
  d->activation = (sg_activation)activation;
  if (!see(in, g->x, "x", &x) || !matrix_of(&x, "x", &d->x) || !see(in, g->w, "w", &w) || !weight_of(&w, "w", &d->w))
    return false;
  const int inputs = d->op_w == SG_OP_N ? 0 : 1;
  if (!fits_weight(&x, "x", &w, inputs, "inputs")) return false;
  const gemm_shape shape = rows_like(&x, w.shape[1 - inputs]);
  PyObject *like = settled(in, g->x, "x");
  *result = like ? given_or_new(in, g->out, "out", like, product_dtype(x.dtype), &shape) : NULL;
  return *result && see_array(in, *result, "out", true, &y) && has_extents(&y, "out", &shape) &&
         matrix_of(&y, "out", &d->y) && see_values(in, g->bias, "bias", &y, "out", &d->bias);
}

static sg_status run_linear(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_linear_async(on, desc, submit, out);
}

static sg_status run_linear_to_its_end(sg_context *on, const void *desc, const sg_submit *submit) {
  return sg_linear(on, desc, submit);
}

static PyObject *wait_for_linear(call *in, const order_arguments *order, const sg_linear_desc *d, PyObject *result) {
  const blocking_call c = {d, run_linear_to_its_end, run_linear, d->y.rows, d->y.cols, d->x.cols, 1};
  sg_submit submit;
  return fill_order(in, order, &submit) && run_blocking(in, &c, &submit) ? Py_NewRef(result) : NULL;
}

/* submit_linear(type or graph, target, x, w, bias, out, op_w, activation, compute, order): a Job whose result is out,
 * or if it waits, which no recording does, out. */
PyObject *submit_linear(PyObject *self, PyObject *args) {
  PyObject *type, *to, *made = NULL, *result = NULL;
  linear_arguments g;
  order_arguments og = {0};
  call in = {.in_order = true};
  sg_linear_desc desc;
  int waits;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOOOOpO&", &type, &to, &g.x, &g.w, &g.bias, &g.out, &g.op_w, &g.activation,
                        &g.compute, &waits, order_of, &og))
    return NULL;
  if (target_of(to, &in.to) && begin_operation(&in, type, &og) && fill_linear(&in, &desc, &result, &g))
    made = waits ? wait_for_linear(&in, &og, &desc, result) : submit_operation(&in, &og, run_linear, &desc, result);
  call_done(&in);
  Py_CLEAR(result);
  return made;
}

typedef struct backward_arguments {
  PyObject *dy, *x, *w, *dx, *dw, *dbias, *op_w, *compute;
  int accumulate;
} backward_arguments;

bool see_result(call *in, PyObject *results, Py_ssize_t at, PyObject *given, const char *name, PyObject *like,
                sg_dtype dtype, const gemm_shape *shape, view *v) {
  PyObject *array = given_or_new(in, given, name, like, product_dtype(dtype), shape);
  if (!array) return false;
  PyTuple_SetItem(results, at, array); /* in place of None */
  return see_array(in, array, name, true, v) && has_extents(v, name, shape);
}

static bool see_dx(call *in, sg_linear_backward_desc *d, PyObject *results, const backward_arguments *g, PyObject *like,
                   const view *dy) {
  view w, dx;
  if (!see(in, g->w, "w", &w) || !weight_of(&w, "w", &d->w)) return false;
  const int inputs = d->op_w == SG_OP_N ? 0 : 1;
  if (!fits_weight(dy, "dy", &w, 1 - inputs, "outputs")) return false;
  const gemm_shape shape = rows_like(dy, w.shape[inputs]);
  return see_result(in, results, 0, g->dx, "dx", like, dy->dtype, &shape, &dx) && matrix_of(&dx, "dx", &d->dx);
}

static bool see_dw(call *in, sg_linear_backward_desc *d, PyObject *results, const backward_arguments *g, PyObject *like,
                   const view *dy) {
  view x, dw;
  if (!see(in, g->x, "x", &x) || !matrix_of(&x, "x", &d->x)) return false;
  const Py_ssize_t inputs = x.shape[x.ndim - 1], outputs = dy->shape[dy->ndim - 1];
  const bool is_n = d->op_w == SG_OP_N;
  const gemm_shape shape = {.ndim = 2, .extent = {is_n ? inputs : outputs, is_n ? outputs : inputs}};
  return see_result(in, results, 1, g->dw, "dw", like, dy->dtype, &shape, &dw) && weight_of(&dw, "dw", &d->dw);
}

static bool see_dbias(call *in, sg_linear_backward_desc *d, PyObject *results, const backward_arguments *g,
                      PyObject *like, const view *dy) {
  view v;
  const gemm_shape shape = {.ndim = 1, .extent = {dy->shape[dy->ndim - 1]}};
  if (!see_result(in, results, 2, g->dbias, "dbias", like, dy->dtype, &shape, &v)) return false;
  if (v.shape[0] > 1 && v.strides[0] != (Py_ssize_t)sg_dtype_size(v.dtype))
    return raise_argument("the values of dbias do not follow each other in memory");
  d->dbias = v.data;
  d->dbias_dtype = v.dtype;
  return true;
}

static bool fill_backward(call *in, sg_linear_backward_desc *d, PyObject *results, const backward_arguments *g) {
  view dy;
  *d = (sg_linear_backward_desc)SG_LINEAR_BACKWARD_DESC_INIT;
  for (Py_ssize_t i = 0; i < 3; ++i) PyTuple_SET_ITEM(results, i, Py_NewRef(Py_None));
  if (!options_of(g->op_w, g->compute, &d->op_w, &d->compute)) return false;
  if (g->accumulate && ((g->x != Py_None && g->dw == Py_None) || g->dbias == Py_None))
    return raise_argument("accumulate is True, so dw and dbias are read: they must be given");
  d->accumulate = g->accumulate;
  PyObject *like = settled(in, g->dy, "dy");
  return like && see(in, g->dy, "dy", &dy) && matrix_of(&dy, "dy", &d->dy) &&
         (g->w == Py_None || see_dx(in, d, results, g, like, &dy)) &&
         (g->x == Py_None || see_dw(in, d, results, g, like, &dy)) &&
         (g->dbias == Py_False || see_dbias(in, d, results, g, like, &dy));
}

static sg_status run_linear_backward(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_linear_backward_async(on, desc, submit, out);
}

/* submit_linear_backward(type or graph, target, dy, x, w, dx, dw, dbias, op_w, compute, accumulate, order): a Job whose
 * result is the tuple of dx, dw and dbias. */
PyObject *submit_linear_backward(PyObject *self, PyObject *args) {
  PyObject *type, *to, *made = NULL;
  backward_arguments g;
  order_arguments og = {0};
  call in = {.in_order = true};
  sg_linear_backward_desc desc;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOOOOOpO&", &type, &to, &g.dy, &g.x, &g.w, &g.dx, &g.dw, &g.dbias, &g.op_w,
                        &g.compute, &g.accumulate, order_of, &og))
    return NULL;
  PyObject *results = PyTuple_New(3);
  if (results && target_of(to, &in.to) && begin_operation(&in, type, &og) && fill_backward(&in, &desc, results, &g))
    made = submit_operation(&in, &og, run_linear_backward, &desc, results);
  call_done(&in);
  Py_XDECREF(results);
  return made;
}
