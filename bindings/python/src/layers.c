/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of layers.h: rows are along the last dimension of an array. */
#include <string.h>

#include "submission.h"

enum { ELEMENTWISE, SOFTMAX, CAUSAL_SOFTMAX, LAYER_NORM, RMS_NORM };

/* The arguments beside those of every submission. */
typedef struct layer_arguments {
  int kind;
  PyObject *x, *second, *third, *out; /* second and third: b, or gamma and beta; None: there is none */
  double epsilon;
  long long number; /* the function, or the mask's offset */
} layer_arguments;

bool matrix_of(const view *v, const char *name, sg_matrix *to) {
  view rows = *v;
  Py_ssize_t shape[2], strides[2];
  int64_t count, stride;
  if (v->ndim == 0) return raise_argument("%s has no dimensions; a row has one", name);
  if (v->ndim > 2) {
    shape[1] = v->shape[v->ndim - 1];
    strides[1] = v->strides[v->ndim - 1];
    if (!one_stride(v->ndim - 1, v->shape, v->strides, &count, &stride))
      return raise_argument("the rows of %s are not evenly spaced in memory", name);
    shape[0] = count;
    strides[0] = stride;
    rows.ndim = 2;
    rows.shape = shape;
    rows.strides = strides;
  }
  return lay_out_view(&rows, rows.ndim, ROW_VECTOR, to) || refuse_strides(v, v->ndim < 2 ? 1 : 2, name);
}

static bool same_shape(const view *a, const char *name, const view *x, const char *other) {
  bool same = a->ndim == x->ndim;
  for (int i = 0; same && i < x->ndim; ++i) same = a->shape[i] == x->shape[i];
  if (same) return true;
  PyObject *is = shape_text(a), *should = shape_text(x);
  if (is && should) raise_argument("%s has shape %R and %s has shape %R; they must be equal", name, is, other, should);
  Py_XDECREF(is);
  Py_XDECREF(should);
  return false;
}

bool see(call *in, PyObject *given, const char *name, view *v) {
  PyObject *array = settled(in, given, name);
  return array && see_array(in, array, name, false, v);
}

bool see_rows(call *in, PyObject *given, const char *name, bool writable, view *v, sg_matrix *to) {
  PyObject *array = settled(in, given, name);
  return array && see_array(in, array, name, writable, v) && matrix_of(v, name, to);
}

bool begin_operation(call *in, PyObject *type, order_arguments *order) {
  if (!PyLong_Check(type)) return call_begin(in, (PyTypeObject *)type);
  order->graph = PyLong_AsUnsignedLongLong(type);
  in->in_order = false;
  return !PyErr_Occurred() && call_begin(in, job_type);
}

PyObject *submit_operation(call *in, const order_arguments *order, operation_function run, const void *desc,
                           PyObject *result) {
  sg_context *const on = (sg_context *)(uintptr_t)in->to.handle;
  const bool records = order->graph != 0;
  sg_submit submit;
  sg_job *handle = NULL;
  sg_status status;
  if (records ? !order_recorded(order, order->graph, &submit) : !fill_order(in, order, &submit) || !ready_to_post())
    return NULL;
  if (!records) post_completion(&submit, in->job);
  Py_BEGIN_ALLOW_THREADS
  status = run(on, desc, &submit, records ? NULL : &handle);
  Py_END_ALLOW_THREADS
  return records ? kept(Py_NewRef(in->job), status, result) : posted(in, &submit, status, handle, result);
}

bool see_values(call *in, PyObject *given, const char *name, const view *x, const char *of, const void **out) {
  view v;
  *out = NULL;
  if (given == Py_None) return true;
  if (!see(in, given, name, &v)) return false;
  const Py_ssize_t n = x->shape[x->ndim - 1], size = (Py_ssize_t)sg_dtype_size(v.dtype);
  if (v.ndim != 1 || v.shape[0] != n) {
    PyObject *is = shape_text(&v);
    if (is) raise_argument("%s has shape %R; %s has rows of %zd values", name, is, of, n);
    Py_XDECREF(is);
    return false;
  }
  if (v.dtype != x->dtype)
    return raise_argument("%s is %s and %s is %s; they must be equal", name, sg_dtype_name(v.dtype), of,
                          sg_dtype_name(x->dtype));
  if (n > 1 && v.strides[0] != size) return raise_argument("the values of %s do not follow each other in memory", name);
  *out = v.data;
  return true;
}

/* The array that is written: the caller's, or a new one like x, which `v` shows. */
static PyObject *result_like(call *in, PyObject *out, PyObject *x, const view *v) {
  if (out != Py_None) {
    PyObject *array = settled(in, out, "out");
    return array ? Py_NewRef(array) : NULL;
  }
  PyObject *like = settled(in, x, "x");
  gemm_shape shape = {.ndim = v->ndim};
  memcpy(shape.extent, v->shape, (size_t)v->ndim * sizeof *v->shape);
  return like ? new_result(like, v->dtype, &shape, false) : NULL;
}

/* Only the descriptor of the kind is used. */
typedef struct layer_request {
  int kind;
  sg_elementwise_desc elementwise;
  sg_softmax_desc softmax;
  sg_norm_desc norm;
  PyObject *result; /* a new reference */
} layer_request;

static bool fill_layer(call *in, layer_request *p, const layer_arguments *g) {
  view x, out, second;
  sg_matrix from, to;
  const bool is_norm = g->kind == LAYER_NORM || g->kind == RMS_NORM;
  p->kind = g->kind;
  if (!see(in, g->x, "x", &x) || !matrix_of(&x, "x", &from)) return false;
  p->result = result_like(in, g->out, g->x, &x);
  if (!p->result || !see_array(in, p->result, "out", true, &out) || !same_shape(&out, "out", &x, "x") ||
      !matrix_of(&out, "out", &to))
    return false;
  p->elementwise = (sg_elementwise_desc)SG_ELEMENTWISE_DESC_INIT;
  p->softmax = (sg_softmax_desc)SG_SOFTMAX_DESC_INIT;
  p->norm = (sg_norm_desc)SG_NORM_DESC_INIT;
  p->elementwise.a = p->softmax.x = p->norm.x = from;
  p->elementwise.c = p->softmax.y = p->norm.y = to;
  p->elementwise.function = (sg_function)g->number;
  p->softmax.mask = g->kind == CAUSAL_SOFTMAX ? SG_MASK_CAUSAL : SG_MASK_NONE;
  p->softmax.mask_offset = g->number;
  if (g->kind == CAUSAL_SOFTMAX && x.ndim > 2) p->softmax.mask_rows = x.shape[x.ndim - 2];
  p->norm.kind = g->kind == RMS_NORM ? SG_NORM_RMS : SG_NORM_LAYER;
  p->norm.epsilon = g->epsilon;
  if (is_norm)
    return see_values(in, g->second, "gamma", &x, "x", &p->norm.gamma) &&
           see_values(in, g->third, "beta", &x, "x", &p->norm.beta);
  if (g->kind != ELEMENTWISE) return true;
  const bool two = g->number >= SG_FUNCTION_ADD;
  if (two != (g->second != Py_None))
    return raise_argument("b is %R; this function has %s operand%s", g->second, two ? "a second" : "one",
                          two ? "" : " only");
  return !two || (see(in, g->second, "b", &second) && same_shape(&second, "b", &x, "x") &&
                  matrix_of(&second, "b", &p->elementwise.b));
}

static sg_status run_layer(sg_context *on, const void *request, const sg_submit *submit, sg_job **out) {
  const layer_request *const p = request;
  if (p->kind == ELEMENTWISE) return sg_elementwise_async(on, &p->elementwise, submit, out);
  if (p->kind == SOFTMAX || p->kind == CAUSAL_SOFTMAX) return sg_softmax_async(on, &p->softmax, submit, out);
  return sg_norm_async(on, &p->norm, submit, out);
}

/* submit_layer(type or graph, target, kind, x, second, third, out, epsilon, number, order): a Job whose result is out.
 */
PyObject *submit_layer(PyObject *self, PyObject *args) {
  PyObject *type, *to, *made = NULL;
  layer_arguments g;
  order_arguments og = {0};
  call in = {.in_order = true};
  layer_request p;
  (void)self;
  p.result = NULL;
  if (!PyArg_ParseTuple(args, "OOiOOOOdLO&", &type, &to, &g.kind, &g.x, &g.second, &g.third, &g.out, &g.epsilon,
                        &g.number, order_of, &og))
    return NULL;
  if (target_of(to, &in.to) && begin_operation(&in, type, &og) && fill_layer(&in, &p, &g))
    made = submit_operation(&in, &og, run_layer, &p, p.result);
  call_done(&in);
  Py_CLEAR(p.result);
  return made;
}

/* Rows of the last two dimensions are tokens of a sequence; each of the other dimensions is one of sequences. */
static bool fill_rotary(call *in, sg_rotary_desc *d, PyObject **result, PyObject *const operands[4]) {
  view x, cos, sin, out;
  if (!see_rows(in, operands[0], "x", false, &x, &d->x)) return false;
  if (operands[1] != Py_None && !see_rows(in, operands[1], "cos", false, &cos, &d->cos)) return false;
  if (operands[2] != Py_None && !see_rows(in, operands[2], "sin", false, &sin, &d->sin)) return false;
  d->sequence_length = x.ndim > 2 ? x.shape[x.ndim - 2] : 0;
  *result = result_like(in, operands[3], operands[0], &x);
  return *result && see_rows(in, *result, "out", true, &out, &d->y) && same_shape(&out, "out", &x, "x");
}

static sg_status run_rotary(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_rotary_async(on, desc, submit, out);
}

/* submit_rotary(type or graph, target, x, cos, sin, out, head_size, rotated_size, position, theta, pairs, inverse,
 * order): a Job whose result is out. */
PyObject *submit_rotary(PyObject *self, PyObject *args) {
  PyObject *type, *to, *operands[4], *made = NULL, *result = NULL;
  order_arguments order = {0};
  call in = {.in_order = true};
  sg_rotary_desc d = SG_ROTARY_DESC_INIT;
  long long head_size, rotated_size, position;
  int pairs, inverse;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOLLLdipO&", &type, &to, &operands[0], &operands[1], &operands[2], &operands[3],
                        &head_size, &rotated_size, &position, &d.theta, &pairs, &inverse, order_of, &order))
    return NULL;
  d.head_size = head_size;
  d.rotated_size = rotated_size;
  d.first_position = position;
  d.pairs = (sg_rotary_pairs)pairs;
  d.inverse = inverse;
  if (target_of(to, &in.to) && begin_operation(&in, type, &order) && fill_rotary(&in, &d, &result, operands))
    made = submit_operation(&in, &order, run_rotary, &d, result);
  call_done(&in);
  Py_CLEAR(result);
  return made;
}

static sg_status run_axpby(sg_context *on, const void *desc, const sg_submit *submit, sg_job **out) {
  return sg_axpby_async(on, desc, submit, out);
}

/* submit_axpby(type or graph, target, a, c, alpha, beta, activation, order): a Job whose result is c. */
PyObject *submit_axpby(PyObject *self, PyObject *args) {
  PyObject *type, *to, *a_given, *c_given, *alpha, *beta, *activation, *made = NULL;
  order_arguments order = {0};
  call in = {.in_order = true};
  sg_axpby_desc d = SG_AXPBY_DESC_INIT;
  view a, c;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOOO&", &type, &to, &a_given, &c_given, &alpha, &beta, &activation, order_of,
                        &order))
    return NULL;
  const int of_activation = activation == Py_None ? 0 : enum_of(activation, hook.activations, "activation");
  d.activation = (sg_activation)of_activation;
  if (of_activation >= 0 && target_of(to, &in.to) && begin_operation(&in, type, &order) &&
      scalar_of(alpha, "alpha", &d.alpha) && scalar_of(beta, "beta", &d.beta) &&
      see_rows(&in, a_given, "a", false, &a, &d.a) && see_rows(&in, c_given, "c", true, &c, &d.c) &&
      same_shape(&a, "a", &c, "c"))
    made = submit_operation(&in, &order, run_axpby, &d, settled(&in, c_given, "c"));
  call_done(&in);
  return made;
}
